import { fileURLToPath } from 'node:url'
import { parseDriver } from './parse/driver.js'
import type { HeaderLocations } from './parse/headers.js'
import { parseNccl } from './parse/nccl.js'
import { parseNvshmem } from './parse/nvshmem.js'
import { parseRuntime } from './parse/runtime.js'
import type { LibrarySpecFile } from './spec/types.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** One library the generator knows: where its headers are, where its spec and sources go. */
export interface Library {
  name: LibrarySpecFile['library']
  specFile: string
  generatedFolder: string
  /** What a real library exports: the list in `abi`, and what library it is of. */
  exports: { title: string; file: string }
  /** Headers that were not found; empty when the library can be parsed. */
  missing: (headers: HeaderLocations) => string[]
  parse: (headers: HeaderLocations) => LibrarySpecFile
}

const needs =
  (...wanted: ('cuda' | 'nccl' | 'nvshmem')[]) =>
  (headers: HeaderLocations) =>
    wanted
      .filter((name) => headers[name] === undefined)
      .map((name) => (name === 'nvshmem' ? 'nvshmem_host.h' : `${name}.h`))

/** Where the published packages are. */
export const packagesFolder = `${root}packages/`

/** The page that says what is covered. */
export const coverageFile = `${root}docs/coverage.md`

export const libraries: readonly Library[] = [
  {
    name: 'driver',
    specFile: `${root}tooling/bindgen/spec/driver.json`,
    generatedFolder: `${root}packages/cuda-sys/src/driver/generated`,
    exports: { title: 'libcuda of driver 580.159', file: `${root}tooling/bindgen/abi/libcuda-580.159.symbols.txt` },
    missing: needs('cuda'),
    parse: ({ cuda }) => parseDriver(cuda as string),
  },
  {
    name: 'runtime',
    specFile: `${root}tooling/bindgen/spec/runtime.json`,
    generatedFolder: `${root}packages/cuda-sys/src/runtime/generated`,
    exports: { title: 'libcudart 13.0', file: `${root}tooling/bindgen/abi/libcudart-13.0.symbols.txt` },
    missing: needs('cuda'),
    parse: ({ cuda }) => parseRuntime(cuda as string),
  },
  {
    name: 'nccl',
    specFile: `${root}tooling/bindgen/spec/nccl.json`,
    generatedFolder: `${root}packages/nccl-sys/src/generated`,
    exports: { title: 'libnccl 2.30.7', file: `${root}tooling/bindgen/abi/libnccl-2.30.7.symbols.txt` },
    missing: needs('cuda', 'nccl'),
    parse: ({ cuda, nccl }) => parseNccl(nccl as string, cuda as string),
  },
  {
    name: 'nvshmem',
    specFile: `${root}tooling/bindgen/spec/nvshmem.json`,
    generatedFolder: `${root}packages/nvshmem-sys/src/generated`,
    exports: { title: 'libnvshmem_host 3.4.5', file: `${root}tooling/bindgen/abi/libnvshmem_host-3.4.5.symbols.txt` },
    missing: needs('cuda', 'nvshmem'),
    parse: ({ cuda, nvshmem }) => parseNvshmem(nvshmem as string, cuda as string),
  },
]
