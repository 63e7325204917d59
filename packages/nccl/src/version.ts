import { NCCL_VERSION_CODE, nccl, ncclGetVersion } from '@shoal/nccl-sys'
import { type Feature, NcclVersion, supports, VersionTooOldError } from '@shoal/types'
import { checkNccl } from './errors.js'

let cached: NcclVersion | undefined

/**
 * Version of the NCCL library in use, found and loaded on the first call (`ncclGetVersion`).
 *
 * @throws LibraryNotFoundError when there is no NCCL on this machine.
 */
export function ncclVersion(): NcclVersion {
  cached ??= NcclVersion.from(nccl.version ?? askLibrary())
  return cached
}

/** The library did not tell: finds out why, which is an error. */
function askLibrary(): number {
  const out = new Int32Array(1)
  checkNccl(ncclGetVersion(out), 'ncclGetVersion')
  return out[0] ?? 0
}

/**
 * Version of the header the bindings were generated from. The library may be older (functions are checked one by one)
 * or newer.
 */
export function ncclHeaderVersion(): NcclVersion {
  return NcclVersion.from(NCCL_VERSION_CODE)
}

/**
 * Whether the NCCL in use knows a feature, such as `Feature.ncclShrink` of `@shoal/types`. What it does not know throws
 * VersionTooOldError when it is called.
 *
 * @throws LibraryNotFoundError when there is no NCCL, TypeError for a feature of another library.
 */
export function ncclSupports(feature: Feature): boolean {
  return supports(ncclVersion(), feature, 'ncclSupports')
}

/** Throws VersionTooOldError when the loaded library is older than `since`; `what` names the function or feature. */
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
