import { textIn } from '@shoal/ffi'
import {
  NVSHMEM_MAX_NAME_LEN,
  NVSHMEM_VENDOR_VERSION,
  nvshmem,
  nvshmem_info_get_name,
  nvshmem_info_get_version,
  nvshmemx_vendor_get_version_info,
} from '@shoal/nvshmem-sys'
import { NvshmemVersion } from '@shoal/types'

/**
 * Returns the version of the NVSHMEM library, loaded at the first call (`nvshmemx_vendor_get_version_info`).
 *
 * @throws LibraryNotFoundError if this machine has no NVSHMEM.
 */
export function nvshmemVersion(): NvshmemVersion {
  nvshmem.load()
  const [major, minor, patch] = [new Int32Array(1), new Int32Array(1), new Int32Array(1)]
  nvshmemx_vendor_get_version_info(major, minor, patch)
  return NvshmemVersion.of(major[0] ?? 0, minor[0] ?? 0, patch[0] ?? 0)
}

/** Returns the version of the headers that the bindings were generated from. */
export function nvshmemHeaderVersion(): NvshmemVersion {
  return NvshmemVersion.from(NVSHMEM_VENDOR_VERSION)
}

/** Returns the library's name, such as `NVSHMEM v3.4.5` (`nvshmem_info_get_name`). */
export function nvshmemName(): string {
  const text = new Uint8Array(NVSHMEM_MAX_NAME_LEN)
  nvshmem_info_get_name(text)
  return textIn(text)
}

/** Returns the version of the OpenSHMEM specification that the library follows (`nvshmem_info_get_version`). */
export function openShmemVersion(): { readonly major: number; readonly minor: number } {
  const [major, minor] = [new Int32Array(1), new Int32Array(1)]
  nvshmem_info_get_version(major, minor)
  return { major: major[0] ?? 0, minor: minor[0] ?? 0 }
}
