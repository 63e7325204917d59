import type { CUdeviceptr } from '@shoal/cuda-sys/driver'
import { callInContext } from '@shoal/ffi'
import { contextSlot, type NativeCall, slots32, slots64 } from '@shoal/ffi/calls'
import type { MemoryRange } from '@shoal/types'
import type { CudaLibrary } from '../../core/calls/cudaLibrary.js'
import type { Context } from '../../core/context/context.js'
import { Status } from '../../core/errors.js'
import type { StreamQueue } from '../../core/waiting/unmarkedWork.js'
import { copyInHostPool } from './hostPoolCopy.js'
import { overlapsInSlots, refuseOverlap, requireApart } from './overlap.js'
import { isReachedByCopies } from './reach.js'

const fourGiB = 2 ** 32
/** `cudaMemcpyDefault` */
const byAddresses = 4

/** The library whose `copy` this is: that of the context used last. */
let library: CudaLibrary | undefined
let copy: NativeCall
let hasKind = false

function bindTo(used: CudaLibrary): void {
  copy = used.copy.bind()
  hasKind = used.name === 'runtime'
  library = used
}

/** Queues a copy of device memory, of this or another device, or of page-locked memory. */
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
  if (deviceOrdinal === device.ordinal) {
    if (cuda !== library) bindTo(cuda)
    const slots = slots32
    slots64[0] = target
    slots64[1] = address
    if (overlapsInSlots(byteLength)) refuseOverlap(api, 'source')
    slots[4] = byteLength
    slots[5] = byteLength / fourGiB
    slots[6] = hasKind ? byAddresses : stream.low
    slots[7] = stream.high
    slots[8] = stream.low
    slots[9] = stream.high
    slots[2 * contextSlot] = context._halves.low
    slots[2 * contextSlot + 1] = context._halves.high
    let status = copy()
    if (status === Status.invalidValue)
      status = copyInHostPool(context, _handle, [target, address], target, address, byteLength)
    if (status !== Status.success) throw cuda.error(status, cuda.copy.api)
    return
  }
  const to = target as CUdeviceptr
  requireApart(target, address, byteLength, api)
  // Each side of the other call needs access for its own device.
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
