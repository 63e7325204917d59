import { macro, toolkitFolders, wheelFoldersOf } from './places.mjs'

/** The headers of both libraries. They include those of the CUDA runtime. */
const headers = {
  product: 'cublas',
  main: 'cublas_api.h',
  needs: ['cuda'],
  versionFile: 'cublas_api.h',
  versionPatterns: ['MAJOR', 'MINOR', 'PATCH'].map((part) => macro(`CUBLAS_VER_${part}`)),
  versionSteps: [10_000, 100, 1],
  variables: {},
  wheelFolder: 'nvidia/cu13/include',
}

const places = { wheelFolders: wheelFoldersOf('cublas'), toolkitFolders }
const hint = 'install the CUDA toolkit or the Python wheel nvidia-cublas'
const note = 'The software device has none.'
const wheel = { wheel: 'nvidia-cublas', conda: 'libcublas' }
const manual = ({ group }) => (group === '' ? undefined : 'https://docs.nvidia.com/cuda/cublas/index.html')

// Both count versions as NVSHMEM does: 130101 is 13.1.1. They answer one part of the version per call.
const version = { format: 'nvshmem', parts: 3, byPart: true, oldest: 120_000 }

/** @type {import('./record.mjs').LibraryRecord} */
export const cublas = {
  id: 'cublas',
  title: 'cuBLAS',
  versionTitle: 'cuBLAS',
  module: '@shoal/cublas-sys',
  safePackages: [],
  topic: 'Linear algebra',
  headers,
  symbols: /^cublas/,
  functionNames: 'cublas(?!Lt)[A-Z]',
  file: /^libcublas\.so/,
  version: { ...version, function: 'cublasGetProperty' },
  places: {
    id: 'cublas',
    title: 'NVIDIA cuBLAS',
    environment: 'SHOAL_CUBLAS_LIBRARY',
    linux: ['libcublas.so.13', 'libcublas.so.12'],
    win32: ['cublas64_13.dll', 'cublas64_12.dll'],
    ...places,
    hint,
    note,
  },
  install: { ...wheel, wheelFile: 'nvidia/cu13/lib/libcublas.so.*' },
  manual,
}

/** @type {import('./record.mjs').LibraryRecord} */
export const cublasLt = {
  id: 'cublasLt',
  title: 'cuBLASLt',
  versionTitle: 'cuBLASLt',
  module: '@shoal/cublas-sys/lt',
  safePackages: [],
  headers,
  symbols: /^cublasLt/,
  functionNames: 'cublasLt[A-Z]',
  file: /^libcublasLt\.so/,
  version: { ...version, function: 'cublasLtGetProperty' },
  places: {
    id: 'cublasLt',
    title: 'NVIDIA cuBLASLt',
    environment: 'SHOAL_CUBLASLT_LIBRARY',
    linux: ['libcublasLt.so.13', 'libcublasLt.so.12'],
    win32: ['cublasLt64_13.dll', 'cublasLt64_12.dll'],
    ...places,
    hint,
    note,
  },
  install: { ...wheel, wheelFile: 'nvidia/cu13/lib/libcublasLt.so.*' },
  manual,
}
