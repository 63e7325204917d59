import type { Suite } from '../../suite.js'
import { argumentSuite } from './arguments.js'
import { arrayMemorySuite } from './arrayMemory.js'
import { childGraphSuite } from './childGraph.js'
import { compileSuite } from './compile.js'
import { contextSuite } from './context.js'
import { copySuite } from './copy.js'
import { deviceSuite } from './device.js'
import { deviceLaunchSuite } from './deviceLaunch.js'
import { diagnosticsSuite } from './diagnostics.js'
import { eventSuite } from './event.js'
import { externalSuite } from './external.js'
import { graphSuite } from './graph.js'
import { growableSuite } from './growable.js'
import { interopSuite } from './interop.js'
import { kernelSuite } from './kernel.js'
import { launchAttributeSuite } from './launchAttributes.js'
import { librarySuite } from './library.js'
import { memorySuite } from './memory.js'
import { memoryPoolSuite } from './memoryPools.js'
import { multicastSuite } from './multicast.js'
import { partitionSuite } from './partition.js'
import { pinnedSuite } from './pinned.js'
import { pitchedSuite } from './pitched.js'
import { pointerSuite } from './pointer.js'
import { sharingSuite } from './sharing/index.js'
import { streamSuite } from './stream.js'
import { surfaceSuite } from './surface.js'
import { tensorMapSuite } from './tensorMap.js'
import { textureSuite } from './texture.js'
import { virtualMemorySuite } from './virtualMemory/index.js'
import { waitingSuite } from './waiting.js'

export const driverSuites: readonly Suite[] = [
  deviceSuite,
  contextSuite,
  streamSuite,
  eventSuite,
  memorySuite,
  copySuite,
  pinnedSuite,
  pitchedSuite,
  kernelSuite,
  argumentSuite,
  launchAttributeSuite,
  partitionSuite,
  librarySuite,
  compileSuite,
  diagnosticsSuite,
  graphSuite,
  childGraphSuite,
  deviceLaunchSuite,
  externalSuite,
  waitingSuite,
  virtualMemorySuite,
  growableSuite,
  sharingSuite,
  interopSuite,
  memoryPoolSuite,
  multicastSuite,
  pointerSuite,
  textureSuite,
  arrayMemorySuite,
  tensorMapSuite,
  surfaceSuite,
]
