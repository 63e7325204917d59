import { ncclVersion } from '@shoal/nccl'
import { dtypeInfo } from '@shoal/types'
import type { Place } from './rankRun.js'
import type { Trial } from './trial.js'

/**
 * What NCCL itself does wrong on GPUs, in a release that was run: such trials are counted and left out. Each is what an
 * H200 answered with 2.28.3; other releases are asked again.
 */
export function knownFault(trial: Trial, { worldSize, device, window }: Place): string | undefined {
  if (device.isSoftware || ncclVersion().value !== 22803) return undefined
  const { collective, dtype, op, count } = trial
  const { bytes } = dtypeInfo(dtype)
  const isScaled = op === 'avg' || op === 'preMulSum'
  // 8-bit floats are refused with ncclInvalidArgument; of other data the end stays as it was.
  if (worldSize === 1 && isScaled) return 'a rank alone does not scale all of its data'
  if (window !== undefined && collective === 'allGather' && (count * bytes) % 8 !== 0) {
    return 'within windows, parts that are no multiple of 8 bytes spill into each other'
  }
  return undefined
}
