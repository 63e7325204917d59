import type { Suite } from '../suite.js'
import { driverSuites } from './driver/index.js'
import { ncclSuites } from './nccl/index.js'
import { nvshmemSuites } from './nvshmem/index.js'
import { runtimeSuites } from './runtime/index.js'
import { sampleSuites } from './samples.js'

/** Every suite, in the order in which they run. */
export const suites: readonly Suite[] = [
  ...driverSuites,
  ...runtimeSuites,
  ...sampleSuites,
  ...ncclSuites,
  ...nvshmemSuites,
]
