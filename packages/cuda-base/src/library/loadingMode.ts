import { check, driverLibrary, scratch } from '@shoal/cuda-base'
import { cuModuleGetLoadingMode } from '@shoal/cuda-sys/driver'

/**
 * Whether code goes to a device when it is loaded, or when something of it is used first (`cuModuleGetLoadingMode`); the environment
 * variable `CUDA_MODULE_LOADING` says which. @throws StatusError
 */
export function moduleLoadingMode(): 'eager' | 'lazy' {
  driverLibrary.start()
  const out = scratch()
  check(cuModuleGetLoadingMode(out), 'cuModuleGetLoadingMode')
  return out.i32[0] === 1 ? 'eager' : 'lazy'
}
