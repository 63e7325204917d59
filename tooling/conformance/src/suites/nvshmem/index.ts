import type { Suite } from '../../suite.js'
import { matrixSuite, teamSuite } from './matrix.js'

export const nvshmemSuites: readonly Suite[] = [teamSuite, matrixSuite]
