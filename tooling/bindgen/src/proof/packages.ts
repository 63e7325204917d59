// The interface of the built packages that the proofs use. They are loaded by file, like an installed package.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type LibraryName, libraries } from '../../../libraries/index.mjs'

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

/** The exports of a sys package under the names of the spec. */
export interface SysPackage {
  readonly library: NativeLibrary
  readonly exports: Readonly<Record<string, unknown>>
}

export async function loadFfi(file: string): Promise<Ffi> {
  return (await import(pathToFileURL(file).href)) as Ffi
}

export async function loadSysPackage(file: string, name: LibraryName): Promise<SysPackage> {
  const exports = (await import(pathToFileURL(file).href)) as Record<string, unknown>
  return { exports, library: exports[name] as NativeLibrary }
}

/** For each library, the package's import specifier and the environment variable for the library's file. */
export const sysPackages = Object.fromEntries(
  libraries.map(({ id, module, places }) => [id, { specifier: module, environment: places.environment }]),
) as Readonly<Record<LibraryName, { readonly specifier: string; readonly environment: string }>>

/** The built file of a specifier, relative to the root of the repository. */
export function builtFile(specifier: string): string {
  return `${specifier.replace(/^@shoal\/([\w-]+)/, 'packages/$1/dist')}/index.js`
}

export const ffiFile = builtFile('@shoal/ffi')

export interface Koffi {
  load(file: string): { func(name: string, result: unknown, parameters: unknown[]): (...values: unknown[]) => unknown }
  struct(name: string, members: Record<string, unknown>): unknown
  array(of: unknown, length: number): unknown
  view(address: bigint, length: number): ArrayBuffer
}

/** The koffi that the packages resolve to. */
export function koffiOf({ root }: { readonly root: string }): Koffi {
  return createRequire(join(root, 'packages/ffi/package.json'))('koffi') as Koffi
}
