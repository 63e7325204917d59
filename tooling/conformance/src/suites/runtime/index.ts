import type { Suite } from '../../suite.js'
import { deviceSuite } from './device.js'
import { librarySuite } from './library.js'
import { memorySuite } from './memory.js'
import { poolSuite } from './pool.js'
import { streamSuite } from './stream.js'
import { virtualMemorySuite } from './virtualMemory.js'

export const runtimeSuites: readonly Suite[] = [
  deviceSuite,
  streamSuite,
  memorySuite,
  poolSuite,
  virtualMemorySuite,
  librarySuite,
]
