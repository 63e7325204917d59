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

export const libraries: readonly Library[] = [
  {
    name: 'driver',
    specFile: `${root}tooling/bindgen/spec/driver.json`,
    generatedFolder: `${root}packages/cuda-sys/src/driver/generated`,
    missing: needs('cuda'),
    parse: ({ cuda }) => parseDriver(cuda as string),
  },
  {
    name: 'runtime',
    specFile: `${root}tooling/bindgen/spec/runtime.json`,
    generatedFolder: `${root}packages/cuda-sys/src/runtime/generated`,
    missing: needs('cuda'),
    parse: ({ cuda }) => parseRuntime(cuda as string),
  },
  {
    name: 'nccl',
    specFile: `${root}tooling/bindgen/spec/nccl.json`,
    generatedFolder: `${root}packages/nccl-sys/src/generated`,
    missing: needs('cuda', 'nccl'),
    parse: ({ cuda, nccl }) => parseNccl(nccl as string, cuda as string),
  },
  {
    name: 'nvshmem',
    specFile: `${root}tooling/bindgen/spec/nvshmem.json`,
    generatedFolder: `${root}packages/nvshmem-sys/src/generated`,
    missing: needs('cuda', 'nvshmem'),
    parse: ({ cuda, nvshmem }) => parseNvshmem(nvshmem as string, cuda as string),
  },
]
