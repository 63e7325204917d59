import type { CUstream } from '@shoal/cuda-sys/driver'
import type { Context } from '../../core/context/context.js'
import { Status } from '../../core/errors.js'
import { byteLengthOf, byteOffsetOf } from '../../core/ranges/arrayBytes.js'
import type { PinnedOwner } from '../../core/ranges/pinnedRegistry.js'
import { type U64Halves, u64Of } from '../../core/u64Halves.js'
import { copyInHostPool } from './hostPoolCopy.js'

const fourGiB = 2 ** 32
/**
 * Queues a copy between device memory and a typed array over page-locked memory with a known address. @throws
 * StatusError
 */
export function queuePinnedCopy(
  context: Context,
  stream: U64Halves,
  isUpload: boolean,
  device: bigint,
  { _start: start }: PinnedOwner,
  array: ArrayBufferView,
): void {
  context._requireAlive()
  const { _halves: current } = context
  const { unchecked } = context._cuda
  const byteLength = byteLengthOf(array)
  const low = (start.low >>> 0) + byteOffsetOf(array)
  const high = start.high + low / fourGiB
  let status = isUpload
    ? unchecked.memcpyHtoDAsync(current, device, low, high, byteLength, stream)
    : unchecked.memcpyDtoHAsync(current, low, high, device, byteLength, stream)
  if (status === Status.invalidValue) {
    const [to, from] = isUpload ? [device, array] : [array, device]
    status = copyInHostPool(context, u64Of(stream) as CUstream, [device], to, from, byteLength)
  }
  if (status !== Status.success) throw context._error(status, isUpload ? 'memcpyHtoDAsync' : 'memcpyDtoHAsync')
}
