import { propertyOf } from '@shoal/types'
import type { CudaArray } from './cudaArray.js'

/** Whether a value is an array. Checks for properties, so that callers do not load the class. */
export function isCudaArray(value: unknown): value is CudaArray {
  return typeof value === 'object' && value !== null && typeof propertyOf(value, '_describeCopy') === 'function'
}
