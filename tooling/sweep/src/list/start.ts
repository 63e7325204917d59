// How groups begin, and the reasons that several of them give.
import type { Spec } from '../spec.js'
import { zero } from './apiNames.js'
import { GroupBuilder, handle, ignored, out, use } from './steps.js'

/** Codes that no version has given a meaning, and the edges of the type. */
export const unknownCodes = [-1, 99, 998, 1000, 12345, 2147483647, -2147483648]

export const others = 'memory of other processes on the device comes and goes'

/** libcudart leaves these bytes as they were on its stack. */
export const unwritten = ignored('libcudart does not write it')

/** Groups with the driver initialised and device 0 kept as `device`. */
export function withDevice(
  spec: Spec,
  name: string,
  options: { devices?: number; optional?: string } = {},
): GroupBuilder {
  return new GroupBuilder(spec, name, options)
    .setUp('cuInit', zero)
    .setUp('cuDeviceGet', out('CUdevice', { save: 'device' }), zero)
}

/** The same with the primary context current, kept as `context`. */
export function withContext(
  spec: Spec,
  name: string,
  options: { devices?: number; optional?: string } = {},
): GroupBuilder {
  return withDevice(spec, name, options)
    .setUp('cuDevicePrimaryCtxRetain', handle('CUcontext', 'context'), use('device'))
    .setUp('cuCtxSetCurrent', use('context'))
}

/** Groups of the runtime with device 0 chosen and its context made. */
export function withRuntimeDevice(spec: Spec, name: string, options: { devices?: number } = {}): GroupBuilder {
  return new GroupBuilder(spec, name, options).setUp('cudaSetDevice', zero)
}
