import type { Suite } from '../../suite.js'
import { collectiveSuite } from './collectives.js'
import { communicatorSuite } from './communicators.js'
import { groupSuite } from './groups.js'
import { derivedSuite } from './matrix/derived.js'
import { matrixSuite } from './matrix/matrix.js'
import { processSuite } from './processes.js'

export const ncclSuites: readonly Suite[] = [communicatorSuite, collectiveSuite, groupSuite, processSuite, derivedSuite, matrixSuite]
