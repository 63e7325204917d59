import { cuModuleGetLoadingMode } from '@shoal/cuda-sys/driver'
import { driverLibrary } from '../../core/calls/driverLibrary.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'

/**
 * Returns whether code is loaded onto a device immediately or at its first use (`cuModuleGetLoadingMode`). The
 * environment variable `CUDA_MODULE_LOADING` sets this mode. @throws StatusError
 */
export function moduleLoadingMode(): 'eager' | 'lazy' {
  driverLibrary.start()
  const out = scratch()
  check(cuModuleGetLoadingMode(out), 'cuModuleGetLoadingMode')
  return out.i32[0] === 1 ? 'eager' : 'lazy'
}
