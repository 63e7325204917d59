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
  if (worldSize === 1 && isScaled && (dtype === 'f8e4m3' || dtype === 'f8e5m2')) {
    return 'a rank alone scales no 8-bit floats: ncclInvalidArgument'
  }
  if (worldSize === 1 && op === 'preMulSum') return 'of an odd count a rank alone leaves the last element unscaled'
  if (window !== undefined && collective === 'allGather' && (count * bytes) % 8 !== 0) {
    return 'within windows, parts that are no multiple of 8 bytes spill into each other'
  }
  return undefined
}
