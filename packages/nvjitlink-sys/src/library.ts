import { defineLibrary, type NativeLibrary } from '@shoal/ffi'
import { bindCall, nestedCall, putPointer } from '@shoal/ffi/calls'
import { formatCudaVersion } from '@shoal/types'

let installedVersion: number | undefined

/** Version of nvJitLink as CUDA counts them, e.g. 13040. One before 12.3 does not tell: it has what 12.0 has. */
function nvJitLinkVersion(library: NativeLibrary): number | undefined {
  if (installedVersion !== undefined) return installedVersion
  const address = library.rawSymbol('nvJitLinkVersion')
  if (address === undefined) return 12_000
  const parts = new Int32Array(2)
  const status = nestedCall(
    () => {
      putPointer(0, parts.subarray(0, 1), 'nvJitLinkVersion', 'major')
      putPointer(1, parts.subarray(1), 'nvJitLinkVersion', 'minor')
    },
    bindCall(address, 2, 'i32', 'nvJitLinkVersion'),
  )
  if (status === 0) installedVersion = (parts[0] as number) * 1000 + (parts[1] as number) * 10
  return installedVersion
}

/** libnvJitLink, which needs neither a GPU nor a driver. Nothing is loaded before the first call. */
export const nvjitlink: NativeLibrary = defineLibrary({
  id: 'nvjitlink',
  title: 'NVIDIA nvJitLink',
  environment: 'SHOAL_NVJITLINK_LIBRARY',
  linux: ['libnvJitLink.so.13', 'libnvJitLink.so.12'],
  win32: ['nvJitLink_130_0.dll', 'nvJitLink_120_0.dll'],
  wheelFolders: ['nvidia/cu13/lib', 'nvidia/nvjitlink/lib', 'nvidia/cu13/bin/x86_64', 'nvidia/nvjitlink/bin'],
  toolkitFolders: ['lib64', 'targets/x86_64-linux/lib', 'targets/sbsa-linux/lib', 'bin', 'bin/x64'],
  worksWithoutDevice: true,
  hint: 'install the CUDA toolkit or the Python wheel nvidia-nvjitlink',
  versionOf: nvJitLinkVersion,
  formatVersion: formatCudaVersion,
})
