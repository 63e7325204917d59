// One record per native library. To add a library, write its record and add it to this list.
import { cublas, cublasLt } from './cublas.mjs'
import { driver } from './driver.mjs'
import { nccl } from './nccl.mjs'
import { nvjitlink } from './nvjitlink.mjs'
import { nvml } from './nvml.mjs'
import { nvrtc } from './nvrtc.mjs'
import { nvshmem } from './nvshmem.mjs'
import { runtime } from './runtime.mjs'

/** All libraries, in the order of pages and reports. */
export const libraries = [driver, runtime, nccl, nvshmem, nvrtc, nvjitlink, cublas, cublasLt, nvml]

/** Raw packages without `@shoal/`, each once. */
export const rawPackages = [...new Set(libraries.map(({ module }) => module.split('/')[1]))]

/** The record of a library. @throws Error for an unknown name */
export function libraryRecord(id) {
  const record = libraries.find((each) => each.id === id)
  if (record === undefined)
    throw new Error(`There is no library ${id}, only ${libraries.map((each) => each.id).join(', ')}.`)
  return record
}

/** Parts of a version number, as in [2, 30, 7] for NCCL's 23007. */
export function versionParts(format, version) {
  if (format === 'cuda') return [Math.floor(version / 1000), Math.floor((version % 1000) / 10)]
  // NCCL before 2.9 counted in thousands.
  const base = format === 'nccl' && version < 10_000 ? 1000 : 10_000
  return [Math.floor(version / base), Math.floor((version % base) / 100), version % 100]
}
