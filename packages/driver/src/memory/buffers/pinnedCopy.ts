import type { CUstream } from '@shoal/cuda-sys/driver'
import { contextSlot, type NativeCall, slots32, slots64 } from '@shoal/ffi/calls'
import type { CudaLibrary } from '../../core/calls/cudaLibrary.js'
import type { Context } from '../../core/context/context.js'
import { Status } from '../../core/errors.js'
import { byteLengthOf, byteOffsetOf } from '../../core/ranges/arrayBytes.js'
import type { PinnedOwner } from '../../core/ranges/pinnedRegistry.js'
import { type U64Halves, u64Of } from '../../core/u64Halves.js'
import { copyInHostPool } from './hostPoolCopy.js'

const fourGiB = 2 ** 32
/** `cudaMemcpyHostToDevice` and `cudaMemcpyDeviceToHost` */
const kinds = { upload: 1, download: 2 } as const

/** The library whose functions these are: that of the context used last. */
let library: CudaLibrary | undefined
let upload: NativeCall
let download: NativeCall
let hasKind = false

function bindTo(used: CudaLibrary): void {
  upload = used.upload.bind()
  download = used.download.bind()
  hasKind = used.name === 'runtime'
  library = used
}

/**
 * Queues a copy between device memory and an array over page-locked memory, whose address is known. @throws StatusError
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
  const { _cuda: cuda } = context
  if (cuda !== library) bindTo(cuda)
  const byteLength = byteLengthOf(array)
  const low = (start.low >>> 0) + byteOffsetOf(array)
  const host = isUpload ? 2 : 0
  const slots = slots32
  slots64[isUpload ? 0 : 1] = device
  slots[host] = low
  slots[host + 1] = start.high + low / fourGiB
  slots[4] = byteLength
  slots[5] = byteLength / fourGiB
  slots[6] = hasKind ? (isUpload ? kinds.upload : kinds.download) : stream.low
  slots[7] = stream.high
  slots[8] = stream.low
  slots[9] = stream.high
  slots[2 * contextSlot] = context._halves.low
  slots[2 * contextSlot + 1] = context._halves.high
  let status = isUpload ? upload() : download()
  if (status === Status.invalidValue) {
    const [to, from] = isUpload ? [device, array] : [array, device]
    status = copyInHostPool(context, u64Of(stream) as CUstream, [device], to, from, byteLength)
  }
  if (status !== Status.success) throw cuda.error(status, isUpload ? cuda.upload.api : cuda.download.api)
}
