import { nvrtc, nvrtcGetNumSupportedArchs, nvrtcGetSupportedArchs } from '@shoal/nvrtc-sys'
import { type OptionKeys, optionalOptions } from '@shoal/types'
import { lookUpFact, store } from '../cache/cache.js'
import { requireCache } from '../options/compileOptions.js'
import { checkNvrtc } from './status.js'

/** Options of {@link supportedArchitectures}. */
export interface SupportedArchitecturesOptions {
  /**
   * Where to cache the result, as for a compilation. Default: true.
   *
   * If an earlier process has cached the result, NVRTC is not loaded.
   */
  readonly cache?: boolean | string | undefined
}

const keys: OptionKeys<SupportedArchitecturesOptions> = { cache: true }

let known: readonly number[] | undefined

/**
 * Returns the compute capabilities that NVRTC supports, ascending: 90 is 9.0 (`nvrtcGetSupportedArchs`).
 *
 * @throws LibraryNotFoundError; VersionTooOldError before 11.2; TypeError, RangeError
 */
export function supportedArchitectures(options?: SupportedArchitecturesOptions): readonly number[] {
  const api = 'supportedArchitectures'
  const cache = requireCache(optionalOptions(options, api, keys).cache, api)
  if (known !== undefined) return known
  const cached = lookUpFact(api, cache)
  if (cached.found !== undefined) {
    known = Object.freeze(cached.found.log.split(' ').map(Number))
    return known
  }
  const count = new Int32Array(1)
  checkNvrtc(nvrtcGetNumSupportedArchs(count), 'nvrtcGetNumSupportedArchs')
  const found = new Int32Array(count[0] as number)
  checkNvrtc(nvrtcGetSupportedArchs(found), 'nvrtcGetSupportedArchs')
  known = Object.freeze([...found].sort((a, b) => a - b))
  store(cached, { ...nothing, log: known.join(' ') })
  return known
}

const nothing = {
  ptx: undefined,
  cubin: undefined,
  ltoIr: undefined,
  optixIr: undefined,
  lowered: {},
  pchHeapRequired: undefined,
}

/** Returns the version of NVRTC, such as `'13.0'`. @throws LibraryNotFoundError */
export function nvrtcVersion(): string {
  nvrtc.load()
  return nvrtc.versionText ?? 'unknown'
}
