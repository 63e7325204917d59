import type { CUdeviceptr, CUstream } from '@shoal/cuda-sys/driver'
import { callInContext } from '@shoal/ffi'
import type { MemoryRange } from '@shoal/types'
import type { Context } from '../context/context.js'
import { Status } from '../errors.js'

/** Queues a copy of device memory, of this or another device, or of page-locked memory. */
export function queueCopy(context: Context, stream: CUstream, target: bigint, source: MemoryRange): void {
  const { address, byteLength, deviceOrdinal } = source
  if (byteLength === 0) return
  const [to, from] = [target as CUdeviceptr, address as CUdeviceptr]
  const { calls } = context._cuda
  const { device } = context
  callInContext(context.handle)
  if (deviceOrdinal < 0) {
    const status = calls.memcpyAsync(to, from, byteLength, stream)
    if (status !== Status.success) throw context._error(status, 'memcpyAsync')
  } else if (deviceOrdinal === device.ordinal) {
    const status = calls.memcpyDtoDAsync(to, from, byteLength, stream)
    if (status !== Status.success) throw context._error(status, 'memcpyDtoDAsync')
  } else {
    const status = calls.memcpyPeerAsync(to, { ordinal: device.ordinal, primaryContext: context }, source, stream)
    if (status !== Status.success) throw context._error(status, 'memcpyPeerAsync')
  }
}
