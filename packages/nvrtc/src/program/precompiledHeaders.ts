import { nvrtcGetPCHHeapSize, nvrtcSetPCHHeapSize } from '@shoal/nvrtc-sys'
import { requireInteger } from '@shoal/types'
import { checkNvrtc } from './status.js'

/**
 * Bytes of the heap that precompiled headers are made in (`nvrtcGetPCHHeapSize`). @throws VersionTooOldError before
 * 12.8
 */
export function pchHeapSize(): number {
  const size = new BigUint64Array(1)
  checkNvrtc(nvrtcGetPCHHeapSize(size), 'nvrtcGetPCHHeapSize')
  return Number(size[0])
}

/**
 * Sets it for the process (`nvrtcSetPCHHeapSize`); NVRTC rounds up to whole pages. Where it is too small, a compilation
 * says so in `pchHeapRequired`.
 * @throws TypeError, RangeError; VersionTooOldError before 12.8
 */
export function setPchHeapSize(byteLength: number): void {
  checkNvrtc(nvrtcSetPCHHeapSize(requireInteger(byteLength, 'setPchHeapSize', 'byteLength', 0)), 'nvrtcSetPCHHeapSize')
}
