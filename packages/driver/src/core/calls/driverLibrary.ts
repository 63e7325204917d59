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
  driver,
} from '@shoal/cuda-sys/driver'
import { driverError, driverStatusText, Status } from '../errors.js'
import { watchForEnd } from '../lifetime.js'
import { startDriver } from '../start.js'
import { type AdaptedCalls, type CudaLibrary, directCalls } from './cudaLibrary.js'
import { driverCalls } from './driverCalls.gen.js'

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

/** Loads the driver and starts it; the end of the thread or of the process is watched from then on. */
function start(): void {
  if (isStarted) return
  startDriver()
  watchForEnd()
  isStarted = true
}

const direct = directCalls(driver)

/** libcuda. */
export const driverLibrary: CudaLibrary = {
  name: 'driver',
  calls: { ...driverCalls, ...adapted },
  nameOf: (call) => `cu${(call[0] as string).toUpperCase()}${call.slice(1)}`,
  error: driverError,
  describeStatus: driverStatusText,
  deviceArgument: ({ handle }) => handle,
  forgetNotReady() {},
  allocate: direct('cuMemAllocAsync', 11020, 3),
  free: direct('cuMemFreeAsync', 11020, 2),
  fillBytes: direct('cuMemsetD8Async', 3020, 4),
  copy: direct('cuMemcpyDtoDAsync', 3020, 4),
  upload: direct('cuMemcpyHtoDAsync', 3020, 4),
  download: direct('cuMemcpyDtoHAsync', 3020, 4),
  launch: direct('cuLaunchKernelEx', 11060, 4),
  start,
  startForCount() {
    // Said by cuInit itself where there is a driver and no device.
    const status: number = cuInit(0)
    if (status !== Status.noDevice) start()
    return status
  },
}
