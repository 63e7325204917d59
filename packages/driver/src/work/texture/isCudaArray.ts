import { propertyOf } from '@shoal/types'
import type { CudaArray } from './cudaArray.js'

/** Whether a value is an array, by what it has: entries that ask do not load its class. */
export function isCudaArray(value: unknown): value is CudaArray {
  return typeof value === 'object' && value !== null && typeof propertyOf(value, '_describeCopy') === 'function'
}
