import type { LibraryName, LibraryRecord, VersionFormat } from './record.mjs'

export type * from './record.mjs'

export const libraries: readonly LibraryRecord[]
export const rawPackages: readonly string[]
export function libraryRecord(id: string): LibraryRecord & { readonly id: LibraryName }
export function versionParts(format: VersionFormat, version: number): readonly number[]
