import { cuModuleGetLoadingMode } from '@shoal/cuda-sys/driver'
import { driverLibrary } from '../../core/calls/driverLibrary.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'

/**
 * Whether code goes to a device when it is loaded, or when something of it is used first (`cuModuleGetLoadingMode`);
 * the environment variable `CUDA_MODULE_LOADING` says which. @throws StatusError
 */
export function moduleLoadingMode(): 'eager' | 'lazy' {
  driverLibrary.start()
  const out = scratch()
  check(cuModuleGetLoadingMode(out), 'cuModuleGetLoadingMode')
  return out.i32[0] === 1 ? 'eager' : 'lazy'
}
