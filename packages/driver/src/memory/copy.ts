import { check, type DeviceMemoryCalls, driverErrors, queueFill } from '@shoal/cuda-base'
import {
  type CUdeviceptr,
  cuMemcpyAsync,
  cuMemcpyDtoDAsync,
  cuMemcpyDtoHAsync,
  cuMemcpyHtoDAsync,
  cuMemcpyPeerAsync,
  cuStreamSynchronize,
} from '@shoal/cuda-sys/driver'
import { callInContext } from '@shoal/ffi'
import type { Context } from '../context.js'
import { Stream, streamFor } from '../stream.js'

/** What acts on device memory. Lengths were checked by the caller; zero bytes are no call at all. */
export const memoryCalls: DeviceMemoryCalls = {
  host: {
    errors: driverErrors,
    toDevice(context, stream, to, from, byteLength) {
      callInContext(context.handle)
      check(cuMemcpyHtoDAsync(to as CUdeviceptr, from, byteLength, stream), 'cuMemcpyHtoDAsync')
    },
    toHost(context, stream, to, from, byteLength) {
      callInContext(context.handle)
      check(cuMemcpyDtoHAsync(to, from as CUdeviceptr, byteLength, stream), 'cuMemcpyDtoHAsync')
    },
    synchronize(context, stream) {
      callInContext(context.handle)
      check(cuStreamSynchronize(stream), 'cuStreamSynchronize')
    },
  },
  streamFor: (context, stream) => streamFor(context as Context, stream),
  copy(context, stream, target, source) {
    const { address, byteLength } = source
    if (byteLength === 0) return
    const to = target as CUdeviceptr
    const from = address as CUdeviceptr
    callInContext(context.handle)
    if (source.deviceOrdinal < 0) {
      check(cuMemcpyAsync(to, from, byteLength, stream), 'cuMemcpyAsync')
    } else if (source.deviceOrdinal === context.device.ordinal) {
      check(cuMemcpyDtoDAsync(to, from, byteLength, stream), 'cuMemcpyDtoDAsync')
    } else {
      const other = source.context as typeof context._handle
      const status = cuMemcpyPeerAsync(to, context._handle, from, other, byteLength, stream)
      check(status, 'cuMemcpyPeerAsync')
    }
  },
  fill: queueFill,
  makeHiddenStream: (context) => Stream._createHidden(context as Context),
}
