import {
  type CUdevice,
  type CUdeviceptr,
  cuCtxDisablePeerAccess,
  cuCtxEnablePeerAccess,
  cuDevicePrimaryCtxReset,
  cuInit,
  cuMemAllocPitch,
  cuMemcpyAsync,
  cuMemcpyDtoHAsync,
  cuMemcpyHtoDAsync,
  cuMemcpyPeerAsync,
} from '@shoal/cuda-sys/driver'
import { driverError, driverStatusText, Status } from '../errors.js'
import { watchForEnd } from '../lifetime.js'
import { startDriver } from '../start.js'
import type { AdaptedCalls, CudaLibrary } from './cudaLibrary.js'
import { driverCalls } from './driverCalls.gen.js'
import {
  cuLaunchKernelExUnchecked,
  cuMemAllocAsyncUnchecked,
  cuMemcpyDtoDAsyncUnchecked,
  cuMemcpyDtoHAsyncUnchecked,
  cuMemcpyHtoDAsyncUnchecked,
  cuMemFreeAsyncUnchecked,
  cuMemsetD8AsyncUnchecked,
} from './uncheckedCalls.gen.js'

const adapted: AdaptedCalls = {
  memcpyHtoDAsync: cuMemcpyHtoDAsync,
  memcpyDtoHAsync: cuMemcpyDtoHAsync,
  memcpyAsync: cuMemcpyAsync,
  memcpyPeerAsync: (to, toDevice, { address, context, byteLength }, stream) =>
    cuMemcpyPeerAsync(
      to,
      toDevice.primaryContext.handle,
      address as CUdeviceptr,
      context as typeof toDevice.primaryContext.handle,
      byteLength,
      stream,
    ),
  memAllocPitch: (out, width, height, depth, elementBytes) =>
    cuMemAllocPitch(out, out.address + 8n, width, height * depth, elementBytes),
  ctxEnablePeerAccess: (peer) => cuCtxEnablePeerAccess(peer.primaryContext.handle, 0),
  ctxDisablePeerAccess: (peer) => cuCtxDisablePeerAccess(peer.primaryContext.handle),
  devicePrimaryCtxReset: (device) => cuDevicePrimaryCtxReset(device as CUdevice),
}

let isStarted = false

/** Loads and starts the driver, and registers the cleanup for the end of the thread or process. */
function start(): void {
  if (isStarted) return
  startDriver()
  watchForEnd()
  isStarted = true
}

/** The library libcuda. */
export const driverLibrary: CudaLibrary = {
  name: 'driver',
  calls: { ...driverCalls, ...adapted },
  unchecked: {
    memAllocAsync: cuMemAllocAsyncUnchecked,
    memFreeAsync: cuMemFreeAsyncUnchecked,
    memsetD8Async: cuMemsetD8AsyncUnchecked,
    memcpyDtoDAsync: cuMemcpyDtoDAsyncUnchecked,
    memcpyDtoHAsync: cuMemcpyDtoHAsyncUnchecked,
    memcpyHtoDAsync: cuMemcpyHtoDAsyncUnchecked,
    launchKernelEx: cuLaunchKernelExUnchecked,
  },
  nameOf: (call) => `cu${(call[0] as string).toUpperCase()}${call.slice(1)}`,
  error: driverError,
  describeStatus: driverStatusText,
  deviceArgument: ({ handle }) => handle,
  forgetNotReady() {},
  start,
  startForCount() {
    // cuInit itself fails if a driver but no device exists.
    const status: number = cuInit(0)
    if (status !== Status.noDevice) start()
    return status
  },
}
