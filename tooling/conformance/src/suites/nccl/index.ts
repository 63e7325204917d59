import type { Suite } from '../../suite.js'
import { collectiveSuite } from './collectives.js'
import { communicatorSuite } from './communicators.js'
import { ncclGraphSuite } from './graphs.js'
import { groupSuite } from './groups.js'
import { derivedSuite } from './matrix/derived.js'
import { killedSuite } from './matrix/killed.js'
import { lifecycleSuite } from './matrix/lifecycle.js'
import { matrixSuite } from './matrix/matrix.js'
import { processSuite } from './processes.js'
import { windowSuite } from './windows.js'

export const ncclSuites: readonly Suite[] = [
  communicatorSuite,
  collectiveSuite,
  groupSuite,
  ncclGraphSuite,
  windowSuite,
  processSuite,
  derivedSuite,
  lifecycleSuite,
  killedSuite,
  matrixSuite,
]
