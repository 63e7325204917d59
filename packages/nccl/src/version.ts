import { NCCL_VERSION_CODE, nccl, ncclGetVersion } from '@shoal/nccl-sys'
import { type Feature, NcclVersion, supports, VersionTooOldError } from '@shoal/types'
import { checkNccl } from './errors.js'

let cached: NcclVersion | undefined

/**
 * Returns the version of the NCCL library, loaded at the first call (`ncclGetVersion`).
 *
 * @throws LibraryNotFoundError if this machine has no NCCL.
 */
export function ncclVersion(): NcclVersion {
  cached ??= NcclVersion.from(nccl.version ?? askLibrary())
  return cached
}

/** Calls `ncclGetVersion` again to throw its error, because the version is unknown. */
function askLibrary(): number {
  const out = new Int32Array(1)
  checkNccl(ncclGetVersion(out), 'ncclGetVersion')
  return out[0] ?? 0
}

/**
 * Returns the version of the header that the bindings were generated from.
 *
 * The library may be older (functions are checked individually) or newer.
 */
export function ncclHeaderVersion(): NcclVersion {
  return NcclVersion.from(NCCL_VERSION_CODE)
}

/**
 * True if the loaded NCCL supports a feature, such as `Feature.ncclShrink` of `@shoal/types`.
 *
 * Calls of unsupported functions throw VersionTooOldError.
 *
 * @throws LibraryNotFoundError if NCCL is missing, TypeError for a feature of another library.
 */
export function ncclSupports(feature: Feature): boolean {
  return supports(ncclVersion(), feature, 'ncclSupports')
}

/** Throws VersionTooOldError if the loaded library is older than `since`; `what` names the function or feature. */
export function requireNcclVersion(what: string, since: number): void {
  const installed = ncclVersion()
  if (installed.value >= since) return
  throw new VersionTooOldError({
    library: 'NCCL',
    api: what,
    since: NcclVersion.from(since).toString(),
    installed: installed.toString(),
  })
}
