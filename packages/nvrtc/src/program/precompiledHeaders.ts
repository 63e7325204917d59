import { nvrtcGetPCHHeapSize, nvrtcSetPCHHeapSize } from '@shoal/nvrtc-sys'
import { requireInteger } from '@shoal/types'
import { checkNvrtc } from './status.js'

/**
 * Returns the heap size for precompiled headers in bytes (`nvrtcGetPCHHeapSize`).
 *
 * @throws VersionTooOldError before 12.8
 */
export function pchHeapSize(): number {
  const size = new BigUint64Array(1)
  checkNvrtc(nvrtcGetPCHHeapSize(size), 'nvrtcGetPCHHeapSize')
  return Number(size[0])
}

/**
 * Sets the heap size for precompiled headers in this process (`nvrtcSetPCHHeapSize`).
 *
 * NVRTC rounds up to whole pages. If the heap is too small, a compilation reports the required size in
 * `pchHeapRequired`.
 * @param byteLength size in bytes
 * @throws TypeError, RangeError; VersionTooOldError before 12.8
 */
export function setPchHeapSize(byteLength: number): void {
  checkNvrtc(nvrtcSetPCHHeapSize(requireInteger(byteLength, 'setPchHeapSize', 'byteLength', 0)), 'nvrtcSetPCHHeapSize')
}
