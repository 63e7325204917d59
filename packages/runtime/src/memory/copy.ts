import { type DeviceMemoryCalls, isUniform, queueFill } from '@shoal/cuda-base'
import {
  cudaMemcpyAsync,
  cudaMemcpyKind,
  cudaMemcpyPeerAsync,
  cudaMemsetAsync,
  cudaStreamSynchronize,
} from '@shoal/cuda-sys/runtime'
import { runtimeErrors } from '../errors.js'
import { callOn } from '../start.js'
import { Stream, streamFor } from '../stream.js'

const { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDefault } = cudaMemcpyKind

/** What acts on device memory. */
export const memoryCalls: DeviceMemoryCalls = {
  host: {
    errors: runtimeErrors,
    toDevice(context, stream, to, from, byteLength) {
      callOn(context, 'cudaMemcpyAsync', () => cudaMemcpyAsync(to, from, byteLength, cudaMemcpyHostToDevice, stream))
    },
    toHost(context, stream, to, from, byteLength) {
      callOn(context, 'cudaMemcpyAsync', () => cudaMemcpyAsync(to, from, byteLength, cudaMemcpyDeviceToHost, stream))
    },
    synchronize(context, stream) {
      callOn(context, 'cudaStreamSynchronize', () => cudaStreamSynchronize(stream))
    },
  },
  streamFor,
  copy(context, stream, target, { address, byteLength, deviceOrdinal }) {
    if (byteLength === 0) return
    const { ordinal } = context.device
    if (deviceOrdinal < 0 || deviceOrdinal === ordinal) {
      callOn(context, 'cudaMemcpyAsync', () => cudaMemcpyAsync(target, address, byteLength, cudaMemcpyDefault, stream))
    } else {
      callOn(context, 'cudaMemcpyPeerAsync', () =>
        cudaMemcpyPeerAsync(target, ordinal, address, deviceOrdinal, byteLength, stream),
      )
    }
  },
  fill(context, stream, target, element, count) {
    if (count === 0) return
    // The runtime only fills with bytes; other elements go through the driver (`cuMemsetD32Async` and its kin).
    if (!isUniform(element)) {
      queueFill(context, stream, target, element, count)
      return
    }
    const byte = element.getUint8(0)
    const byteLength = count * element.byteLength
    callOn(context, 'cudaMemsetAsync', () => cudaMemsetAsync(target, byte, byteLength, stream))
  },
  makeHiddenStream: (context) => Stream._createHidden(context),
}
