import type { CUdeviceptr } from '@shoal/cuda-sys/driver'
import { callInContext } from '@shoal/ffi'
import type { MemoryRange } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { Status } from '../../core/errors.js'
import type { StreamQueue } from '../../core/waiting/unmarkedWork.js'
import { copyInHostPool } from './hostPoolCopy.js'
import { requireApart } from './overlap.js'
import { isReachedByCopies } from './reach.js'

/** Queues a copy from device memory of any device, or from page-locked memory. */
export function queueCopy(
  context: Context,
  { _handle, _halves: stream }: StreamQueue,
  target: bigint,
  source: MemoryRange,
  api: string,
): void {
  const { address, byteLength, deviceOrdinal } = source
  if (byteLength === 0) return
  const { device, _cuda: cuda } = context
  requireApart(target, address, byteLength, api)
  if (deviceOrdinal === device.ordinal) {
    let status = cuda.unchecked.memcpyDtoDAsync(context._halves, target, address, byteLength, stream)
    if (status === Status.invalidValue)
      status = copyInHostPool(context, _handle, [target, address], target, address, byteLength)
    if (status !== Status.success) throw context._error(status, 'memcpyDtoDAsync')
    return
  }
  const to = target as CUdeviceptr
  // memcpyPeerAsync would require that each device has access to its own side.
  const isDirect = deviceOrdinal < 0 || (source.access !== undefined && isReachedByCopies(context, source))
  callInContext(context.handle)
  if (isDirect) {
    const status = cuda.calls.memcpyAsync(to, address as CUdeviceptr, byteLength, _handle)
    if (status !== Status.success) throw context._error(status, 'memcpyAsync')
  } else {
    const status = cuda.calls.memcpyPeerAsync(to, { ordinal: device.ordinal, primaryContext: context }, source, _handle)
    if (status !== Status.success) throw context._error(status, 'memcpyPeerAsync')
  }
}
