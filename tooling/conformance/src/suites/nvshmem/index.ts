import type { Suite } from '../../suite.js'
import { killedSuite } from './killed.js'
import { matrixSuite, teamSuite } from './matrix.js'

export const nvshmemSuites: readonly Suite[] = [teamSuite, killedSuite, matrixSuite]
