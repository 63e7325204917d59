import { defineLibrary, type NativeLibrary } from '@shoal/ffi'
import { bindCall, nestedCall, putPointer } from '@shoal/ffi/calls'
import { formatNvshmemVersion } from '@shoal/types'

let installedVersion: number | undefined

/** NVSHMEM's version as `NVSHMEM_VENDOR_VERSION` counts it, e.g. 30405; `undefined` where the library does not tell. */
function nvshmemVersion(library: NativeLibrary): number | undefined {
  if (installedVersion !== undefined) return installedVersion
  const api = 'nvshmemx_vendor_get_version_info'
  const address = library.rawSymbol(api)
  if (address === undefined) return undefined
  const [major, minor, patch] = [new Int32Array(1), new Int32Array(1), new Int32Array(1)]
  nestedCall(
    () => {
      putPointer(0, major, api, 'major')
      putPointer(1, minor, api, 'minor')
      putPointer(2, patch, api, 'patch')
    },
    bindCall(address, 3, 'void', api),
  )
  installedVersion = (major[0] as number) * 10000 + (minor[0] as number) * 100 + (patch[0] as number)
  return installedVersion
}

/**
 * libnvshmem_host. Nothing is loaded before the first call. It finds its bootstrap and transport plugins next to itself,
 * and there is one NVSHMEM in a process.
 */
export const nvshmem: NativeLibrary = defineLibrary({
  id: 'nvshmem',
  title: 'NVIDIA NVSHMEM',
  environment: 'SHOAL_NVSHMEM_LIBRARY',
  sim: 'libshoal-sim-nvshmem_host.so.3',
  linux: ['libnvshmem_host.so.3'],
  wheelFolders: ['nvidia/nvshmem/lib'],
  systemFolders: ['x86_64', 'aarch64'].flatMap((machine) =>
    ['13', '12'].map((cuda) => `/usr/lib/${machine}-linux-gnu/nvshmem/${cuda}`),
  ),
  hint: 'install the Python wheel nvidia-nvshmem-cu13 or the package libnvshmem3-cuda-13, on Linux',
  versionOf: nvshmemVersion,
  formatVersion: formatNvshmemVersion,
})
