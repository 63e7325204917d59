import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { libraries } from '../../libraries/index.mjs'

// The names of each library, and its places in NVIDIA's packages and in distributions. The built packages are loaded
// with an engine that records what they pass to it.

interface Places {
  readonly id: string
  readonly [name: string]: unknown
}

const packages = fileURLToPath(new URL('../../../packages/', import.meta.url))
const modules = join(scratchFolder(), 'node_modules', '@shoal')
const found: Places[] = []
;(globalThis as { placesFound?: Places[] }).placesFound = found

const { exports } = JSON.parse(readFileSync(join(packages, 'ffi', 'package.json'), 'utf8'))
mkdirSync(join(modules, 'ffi'), { recursive: true })
symlinkSync(join(packages, 'types'), join(modules, 'types'))
const recorder: { [entry: string]: string } = {}
for (const [entry, target] of Object.entries(exports as { [entry: string]: { readonly default: string } | string })) {
  if (typeof target === 'string') continue
  const file = `./${Object.keys(recorder).length}.js`
  recorder[entry] = file
  const engine = JSON.stringify(pathToFileURL(join(packages, 'ffi', target.default)).href)
  const recording = `
    import { defineLibrary as define } from ${engine}
    export const defineLibrary = (places) => {
      globalThis.placesFound.push(places)
      return define(places)
    }`
  const definesLibraries = 'defineLibrary' in (await import(JSON.parse(engine)))
  writeFileSync(join(modules, 'ffi', file), `export * from ${engine}${definesLibraries ? recording : ''}`)
}
writeFileSync(join(modules, 'ffi', 'package.json'), JSON.stringify({ type: 'module', exports: recorder }))

const entries = libraries.map(({ module }) => module.replace('@shoal/', '').split('/'))
for (const [name = '', ...entry] of entries) {
  cpSync(join(packages, name, 'dist'), join(modules, name, 'dist'), { recursive: true })
  cpSync(join(packages, name, 'package.json'), join(modules, name, 'package.json'))
  await import(pathToFileURL(join(modules, name, 'dist', ...entry, 'index.js')).href)
}

// The expected values are literals: they follow NVIDIA's packages and the distributions, not the records.
const system = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64']
const toolkitFolders = ['lib64', 'targets/x86_64-linux/lib', 'targets/sbsa-linux/lib', 'bin', 'bin/x64']
const wheelsOf = (name: string) => [
  'nvidia/cu13/lib',
  `nvidia/${name}/lib`,
  'nvidia/cu13/bin/x86_64',
  `nvidia/${name}/bin`,
]

test.each<Places>([
  {
    id: 'cuda',
    environment: 'SHOAL_CUDA_LIBRARY',
    linux: ['libcuda.so.1'],
    win32: ['nvcuda.dll'],
    systemFolders: [...system, '/usr/lib/wsl/lib'],
    sim: 'libshoal-sim-cuda.so.1',
  },
  {
    id: 'cudart',
    environment: 'SHOAL_CUDART_LIBRARY',
    linux: ['libcudart.so.13', 'libcudart.so.12', 'libcudart.so.11.0'],
    win32: ['cudart64_13.dll', 'cudart64_12.dll', 'cudart64_110.dll'],
    wheelFolders: wheelsOf('cuda_runtime'),
    toolkitFolders,
    sim: 'libshoal-sim-cudart.so.13',
  },
  {
    id: 'nccl',
    environment: 'SHOAL_NCCL_LIBRARY',
    linux: ['libnccl.so.2'],
    win32: ['nccl.dll'],
    wheelFolders: ['nvidia/nccl/lib'],
    systemFolders: system,
    sim: 'libshoal-sim-nccl.so.2',
  },
  {
    id: 'nvshmem',
    environment: 'SHOAL_NVSHMEM_LIBRARY',
    linux: ['libnvshmem_host.so.3'],
    wheelFolders: ['nvidia/nvshmem/lib'],
    systemFolders: [
      '/usr/lib/x86_64-linux-gnu/nvshmem/13',
      '/usr/lib/x86_64-linux-gnu/nvshmem/12',
      '/usr/lib/aarch64-linux-gnu/nvshmem/13',
      '/usr/lib/aarch64-linux-gnu/nvshmem/12',
    ],
    sim: 'libshoal-sim-nvshmem_host.so.3',
  },
  {
    id: 'nvrtc',
    environment: 'SHOAL_NVRTC_LIBRARY',
    linux: ['libnvrtc.so.13', 'libnvrtc.so.12', 'libnvrtc.so.11.2'],
    win32: ['nvrtc64_130_0.dll', 'nvrtc64_120_0.dll', 'nvrtc64_112_0.dll'],
    wheelFolders: wheelsOf('cuda_nvrtc'),
    toolkitFolders,
    worksWithoutDevice: true,
    companions: /^libnvrtc-builtins\.so\.\d+\.\d+$/,
  },
  {
    id: 'nvjitlink',
    environment: 'SHOAL_NVJITLINK_LIBRARY',
    linux: ['libnvJitLink.so.13', 'libnvJitLink.so.12'],
    win32: ['nvJitLink_130_0.dll', 'nvJitLink_120_0.dll'],
    wheelFolders: wheelsOf('nvjitlink'),
    toolkitFolders,
    worksWithoutDevice: true,
  },
  {
    id: 'cublas',
    environment: 'SHOAL_CUBLAS_LIBRARY',
    linux: ['libcublas.so.13', 'libcublas.so.12'],
    win32: ['cublas64_13.dll', 'cublas64_12.dll'],
    wheelFolders: wheelsOf('cublas'),
    toolkitFolders,
  },
  {
    id: 'cublasLt',
    environment: 'SHOAL_CUBLASLT_LIBRARY',
    linux: ['libcublasLt.so.13', 'libcublasLt.so.12'],
    win32: ['cublasLt64_13.dll', 'cublasLt64_12.dll'],
    wheelFolders: wheelsOf('cublas'),
    toolkitFolders,
  },
  {
    id: 'nvml',
    environment: 'SHOAL_NVML_LIBRARY',
    linux: ['libnvidia-ml.so.1'],
    win32: ['nvml.dll'],
    systemFolders: [...system, '/usr/lib/wsl/lib'],
  },
])('$id is searched by its names in its install folders', (expected) => {
  const {
    title: _,
    hint,
    resolve: __,
    versionOf: ___,
    formatVersion,
    ...places
  } = found.find(({ id }) => id === expected.id) as Places
  expect(places).toEqual(expected)
  expect(hint).toMatch(/^install the /)
  expect(formatVersion).toBeTypeOf('function')
})
