import { nvrtc, nvrtcGetNumSupportedArchs, nvrtcGetSupportedArchs } from '@shoal/nvrtc-sys'
import { checkNvrtc } from './status.js'

let known: readonly number[] | undefined

/**
 * The compute capabilities that NVRTC has code for, smallest first: 90 is 9.0 (`nvrtcGetSupportedArchs`).
 * @throws LibraryNotFoundError; VersionTooOldError before 11.2
 */
export function supportedArchitectures(): readonly number[] {
  if (known !== undefined) return known
  const count = new Int32Array(1)
  checkNvrtc(nvrtcGetNumSupportedArchs(count), 'nvrtcGetNumSupportedArchs')
  const found = new Int32Array(count[0] as number)
  checkNvrtc(nvrtcGetSupportedArchs(found), 'nvrtcGetSupportedArchs')
  known = Object.freeze([...found].sort((a, b) => a - b))
  return known
}

/** The version of NVRTC, such as `'13.0'`. @throws LibraryNotFoundError */
export function nvrtcVersion(): string {
  nvrtc.load()
  return nvrtc.versionText ?? 'unknown'
}
