import {
  cudaDeviceDisablePeerAccess,
  cudaDeviceEnablePeerAccess,
  cudaDeviceReset,
  cudaMalloc3D,
  cudaMemcpyAsync,
  cudaMemcpyKind,
  cudaMemcpyPeerAsync,
} from '@shoal/cuda-sys/runtime'
import type { AdaptedCalls, UncheckedCalls } from '@shoal/driver/shared'

const { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDefault } = cudaMemcpyKind

/** What libcudart does with other arguments than libcuda, each with what is different. */
export const adaptedCalls: AdaptedCalls = {
  // One function for all directions, which it is told.
  memcpyHtoDAsync: (to, from, byteLength, stream) =>
    cudaMemcpyAsync(to, from, byteLength, cudaMemcpyHostToDevice, stream),
  memcpyDtoHAsync: (to, from, byteLength, stream) =>
    cudaMemcpyAsync(to, from, byteLength, cudaMemcpyDeviceToHost, stream),
  memcpyAsync: (to, from, byteLength, stream) => cudaMemcpyAsync(to, from, byteLength, cudaMemcpyDefault, stream),
  // Devices by ordinal, where libcuda takes contexts.
  memcpyPeerAsync: (to, toDevice, { address, deviceOrdinal, byteLength }, stream) =>
    cudaMemcpyPeerAsync(to, toDevice.ordinal, address, deviceOrdinal, byteLength, stream),
  // Sizes as a structure. Of two dimensions it makes what cudaMallocPitch does.
  memAllocPitch: (out, width, height, depth) =>
    cudaMalloc3D(out, new BigUint64Array([BigInt(width), BigInt(height), BigInt(depth)])),
  ctxEnablePeerAccess: (peer) => cudaDeviceEnablePeerAccess(peer.ordinal, 0),
  ctxDisablePeerAccess: (peer) => cudaDeviceDisablePeerAccess(peer.ordinal),
  // Of the current device, where libcuda takes one.
  devicePrimaryCtxReset: () => cudaDeviceReset(),
}

/** What they are called in C. */
export const adaptedNames: { readonly [K in keyof AdaptedCalls | keyof UncheckedCalls]?: string } = {
  memcpyHtoDAsync: 'cudaMemcpyAsync',
  memcpyDtoHAsync: 'cudaMemcpyAsync',
  memcpyAsync: 'cudaMemcpyAsync',
  memcpyDtoDAsync: 'cudaMemcpyAsync',
  memcpyPeerAsync: 'cudaMemcpyPeerAsync',
  memAllocPitch: 'cudaMalloc3D',
  ctxEnablePeerAccess: 'cudaDeviceEnablePeerAccess',
  ctxDisablePeerAccess: 'cudaDeviceDisablePeerAccess',
  devicePrimaryCtxReset: 'cudaDeviceReset',
  launchKernelEx: 'cudaLaunchKernelExC',
}
