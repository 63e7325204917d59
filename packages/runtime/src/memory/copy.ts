import type { Context } from '@shoal/cuda-base'
import { queueFill as driverFill, type HostCopyCalls, isUniform } from '@shoal/cuda-base'
import {
  cudaMemcpyAsync,
  cudaMemcpyKind,
  cudaMemcpyPeerAsync,
  cudaMemsetAsync,
  type cudaStream_t,
  cudaStreamSynchronize,
} from '@shoal/cuda-sys/runtime'
import type { MemoryRange } from '@shoal/types'
import { runtimeErrors } from '../errors.js'
import { callOn } from '../start.js'

const { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDefault } = cudaMemcpyKind

/** Copies between host and device, on a stream (`cudaMemcpyAsync`). */
export const hostCopies: HostCopyCalls = {
  errors: runtimeErrors,
  toDevice(context, stream, to, from, byteLength) {
    callOn(context, 'cudaMemcpyAsync', () => cudaMemcpyAsync(to, from, byteLength, cudaMemcpyHostToDevice, stream))
  },
  toHost(context, stream, to, from, byteLength) {
    callOn(context, 'cudaMemcpyAsync', () => cudaMemcpyAsync(to, from, byteLength, cudaMemcpyDeviceToHost, stream))
  },
  synchronize: synchronizeStream,
}

export function synchronizeStream(context: Context, stream: cudaStream_t): void {
  callOn(context, 'cudaStreamSynchronize', () => cudaStreamSynchronize(stream))
}

/** Queues a copy of device memory of the same or another device, or of page-locked memory. */
export function queueDeviceCopy(context: Context, stream: cudaStream_t, target: bigint, source: MemoryRange): void {
  const { address, byteLength, device } = source
  if (byteLength === 0) return
  const { ordinal } = context.device
  if (device < 0 || device === ordinal) {
    callOn(context, 'cudaMemcpyAsync', () => cudaMemcpyAsync(target, address, byteLength, cudaMemcpyDefault, stream))
  } else {
    callOn(context, 'cudaMemcpyPeerAsync', () =>
      cudaMemcpyPeerAsync(target, ordinal, address, device, byteLength, stream),
    )
  }
}

/**
 * Queues the writing of `count` copies of an element. The runtime only fills with bytes (`cudaMemsetAsync`); other
 * elements go through the driver (`cuMemsetD32Async` and its kin).
 */
export function queueFill(
  context: Context,
  stream: cudaStream_t,
  target: bigint,
  element: DataView,
  count: number,
): void {
  if (count === 0) return
  if (!isUniform(element)) {
    driverFill(context, stream, target, element, count)
    return
  }
  const byte = element.getUint8(0)
  const byteLength = count * element.byteLength
  callOn(context, 'cudaMemsetAsync', () => cudaMemsetAsync(target, byte, byteLength, stream))
}
