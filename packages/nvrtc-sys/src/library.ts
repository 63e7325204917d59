import { defineLibrary, type NativeLibrary } from '@shoal/ffi'
import { bindCall, nestedCall, putPointer } from '@shoal/ffi/calls'
import { formatCudaVersion } from '@shoal/types'

let installedVersion: number | undefined

/** Version of NVRTC as CUDA counts them, e.g. 13000; `undefined` where it does not tell. */
function nvrtcVersion(library: NativeLibrary): number | undefined {
  if (installedVersion !== undefined) return installedVersion
  const address = library.rawSymbol('nvrtcVersion')
  if (address === undefined) return undefined
  const parts = new Int32Array(2)
  const status = nestedCall(
    () => {
      putPointer(0, parts.subarray(0, 1), 'nvrtcVersion', 'major')
      putPointer(1, parts.subarray(1), 'nvrtcVersion', 'minor')
    },
    bindCall(address, 2, 'i32', 'nvrtcVersion'),
  )
  if (status === 0) installedVersion = (parts[0] as number) * 1000 + (parts[1] as number) * 10
  return installedVersion
}

/** libnvrtc, which needs neither a GPU nor a driver. Nothing is loaded before the first call. */
export const nvrtc: NativeLibrary = defineLibrary({
  id: 'nvrtc',
  title: 'NVIDIA NVRTC',
  environment: 'SHOAL_NVRTC_LIBRARY',
  linux: ['libnvrtc.so.13', 'libnvrtc.so.12', 'libnvrtc.so.11.2'],
  win32: ['nvrtc64_130_0.dll', 'nvrtc64_120_0.dll', 'nvrtc64_112_0.dll'],
  wheelFolders: ['nvidia/cu13/lib', 'nvidia/cuda_nvrtc/lib', 'nvidia/cu13/bin/x86_64', 'nvidia/cuda_nvrtc/bin'],
  toolkitFolders: ['lib64', 'targets/x86_64-linux/lib', 'targets/sbsa-linux/lib', 'bin', 'bin/x64'],
  worksWithoutDevice: true,
  companions: /^libnvrtc-builtins\.so\.\d+\.\d+$/,
  hint: 'install the CUDA toolkit or the Python wheel nvidia-cuda-nvrtc',
  versionOf: nvrtcVersion,
  formatVersion: formatCudaVersion,
})
