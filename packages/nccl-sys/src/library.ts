import { defineLibrary, type NativeLibrary } from '@shoal/ffi'
import { bindCall, nestedCall, putPointer } from '@shoal/ffi/calls'
import { formatNcclVersion } from '@shoal/types'

let installedVersion: number | undefined

/** NCCL's version as `ncclGetVersion` tells it, e.g. 23007; `undefined` where it does not. */
function ncclVersion(library: NativeLibrary): number | undefined {
  if (installedVersion !== undefined) return installedVersion
  const address = library.rawSymbol('ncclGetVersion')
  if (address === undefined) return undefined
  const cell = new Int32Array(1)
  const status = nestedCall(
    () => putPointer(0, cell, 'ncclGetVersion', 'version'),
    bindCall(address, 1, 'i32', 'ncclGetVersion'),
  )
  if (status === 0) installedVersion = cell[0]
  return installedVersion
}

/** libnccl. Nothing is loaded before the first call. */
export const nccl: NativeLibrary = defineLibrary({
  id: 'nccl',
  title: 'NVIDIA NCCL',
  environment: 'SHOAL_NCCL_LIBRARY',
  linux: ['libnccl.so.2'],
  win32: ['nccl.dll'],
  wheelFolders: ['nvidia/nccl/lib'],
  systemFolders:
    process.platform === 'linux' ? ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64'] : [],
  sim: 'libshoal-sim-nccl.so.2',
  hint: 'install the package libnccl2 or the Python wheel nvidia-nccl-cu13, or set SHOAL_DEVICE=sim to use the software device',
  versionOf: ncclVersion,
  formatVersion: formatNcclVersion,
})
