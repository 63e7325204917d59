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

/** Calls whose arguments differ between libcudart and libcuda. */
export const adaptedCalls: AdaptedCalls = {
  // One function for all directions, with the direction as an argument.
  memcpyHtoDAsync: (to, from, byteLength, stream) =>
    cudaMemcpyAsync(to, from, byteLength, cudaMemcpyHostToDevice, stream),
  memcpyDtoHAsync: (to, from, byteLength, stream) =>
    cudaMemcpyAsync(to, from, byteLength, cudaMemcpyDeviceToHost, stream),
  memcpyAsync: (to, from, byteLength, stream) => cudaMemcpyAsync(to, from, byteLength, cudaMemcpyDefault, stream),
  // Takes device ordinals; libcuda takes contexts.
  memcpyPeerAsync: (to, toDevice, { address, deviceOrdinal, byteLength }, stream) =>
    cudaMemcpyPeerAsync(to, toDevice.ordinal, address, deviceOrdinal, byteLength, stream),
  // Takes sizes as a structure. For two dimensions it allocates like cudaMallocPitch.
  memAllocPitch: (out, width, height, depth) =>
    cudaMalloc3D(out, new BigUint64Array([BigInt(width), BigInt(height), BigInt(depth)])),
  ctxEnablePeerAccess: (peer) => cudaDeviceEnablePeerAccess(peer.ordinal, 0),
  ctxDisablePeerAccess: (peer) => cudaDeviceDisablePeerAccess(peer.ordinal),
  // Resets the current device; libcuda takes a device.
  devicePrimaryCtxReset: () => cudaDeviceReset(),
}

/** Names of these functions in C. */
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
