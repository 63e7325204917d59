import type { Suite } from '../../suite.js'
import { matrixSuite } from './matrix.js'

export const nvshmemSuites: readonly Suite[] = [matrixSuite]
