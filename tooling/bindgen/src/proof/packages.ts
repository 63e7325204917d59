// The built packages under test, as far as the proofs use them. They are loaded by file, the way an installed package is.

import { pathToFileURL } from 'node:url'
import type { LibrarySpecFile } from '../spec/types.js'

export interface NativeMemory {
  readonly address: bigint
  readonly bytes: Uint8Array
  readonly byteLength: number
}

export interface Ffi {
  NativeMemory: { allocate(byteLength: number): NativeMemory }
  addressOf(view: ArrayBufferView | ArrayBufferLike): bigint
  defineStructCodec(layout: object): Codec
  hostView(address: bigint, byteLength: number): { readonly buffer: ArrayBuffer }
  offThread(options: { stopOnError?: boolean; results?: 'value' }, record: () => void): Promise<unknown[]>
}

export interface NativeLibrary {
  rawSymbol(name: string): bigint | undefined
  load(): { readonly path: string }
}

export interface Codec {
  readonly name: string
  readonly size: number
  readonly alignment: number
  readonly offsets: Readonly<Record<string, number>>
  allocate(value?: object): Uint8Array<ArrayBuffer>
  read(memory: ArrayBufferView | ArrayBufferLike, byteOffset?: number): Record<string, unknown>
  write(memory: ArrayBufferView | ArrayBufferLike, value: object, byteOffset?: number): void
  view(memory: ArrayBufferView | ArrayBufferLike, byteOffset?: number): Record<string, unknown>
}

export type SysFunction = (...values: unknown[]) => unknown

/** What a sys package exports under the names of the spec. */
export interface SysPackage {
  readonly library: NativeLibrary
  readonly exports: Readonly<Record<string, unknown>>
}

export async function loadFfi(file: string): Promise<Ffi> {
  return (await import(pathToFileURL(file).href)) as Ffi
}

export async function loadSysPackage(file: string, name: LibrarySpecFile['library']): Promise<SysPackage> {
  const exports = (await import(pathToFileURL(file).href)) as Record<string, unknown>
  return { exports, library: exports[name] as NativeLibrary }
}

/** The package's file and the variable that names the library's file, by library; paths from the root of the repository. */
export const sysPackages: Readonly<Record<string, { file: string; environment: string }>> = {
  driver: { file: 'packages/cuda-sys/dist/driver/index.js', environment: 'SHOAL_CUDA_LIBRARY' },
  runtime: { file: 'packages/cuda-sys/dist/runtime/index.js', environment: 'SHOAL_CUDART_LIBRARY' },
  nccl: { file: 'packages/nccl-sys/dist/index.js', environment: 'SHOAL_NCCL_LIBRARY' },
  nvshmem: { file: 'packages/nvshmem-sys/dist/index.js', environment: 'SHOAL_NVSHMEM_LIBRARY' },
}

export const ffiFile = 'packages/ffi/dist/index.js'
