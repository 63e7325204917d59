// What the sweep reads of the spec in tooling/bindgen/spec.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const libraryIds = ['driver', 'runtime', 'nccl', 'nvshmem'] as const
export type LibraryId = (typeof libraryIds)[number]

export interface SpecFunction {
  readonly name: string
  readonly symbol: string
  readonly lookup: string
  readonly since: number
  readonly perThreadSymbol?: string
  readonly platform?: 'linux' | 'win32'
  readonly otherMajors?: readonly number[]
  /** for an earlier ABI */
  readonly supersededBy?: string
  /** why a library of the right version and platform may lack it */
  readonly reason?: string
  readonly result: { readonly kind: string; readonly type?: string }
  readonly resultCtype: string
  readonly parameters: readonly {
    readonly name: string
    readonly ctype: string
    readonly lowered: { readonly kind: string; readonly type?: string }
  }[]
}

interface SpecField {
  readonly name: string
  readonly offset: number
  readonly size: number
  readonly count?: number
}

interface SpecFile {
  readonly headerVersion: number
  readonly functions: readonly SpecFunction[]
  readonly enums: readonly { readonly name: string; readonly members: readonly (readonly [string, number])[] }[]
  readonly structs: readonly { readonly name: string; readonly size: number; readonly fields: readonly SpecField[] }[]
  readonly handles: readonly { readonly name: string }[]
  readonly scalars: readonly { readonly name: string; readonly type: string }[]
}

/** One library's spec, looked up by name. */
export class Spec {
  readonly library: LibraryId
  readonly headerVersion: number
  readonly functions: ReadonlyMap<string, SpecFunction>
  readonly #file: SpecFile
  readonly #enums: ReadonlyMap<string, SpecFile['enums'][number]>
  readonly #structs: ReadonlyMap<string, SpecFile['structs'][number]>

  constructor(library: LibraryId, file: SpecFile) {
    this.library = library
    this.headerVersion = file.headerVersion
    this.functions = new Map(file.functions.map((one) => [one.name, one]))
    this.#file = file
    this.#enums = new Map(file.enums.map((one) => [one.name, one]))
    this.#structs = new Map(file.structs.map((one) => [one.name, one]))
  }

  function(name: string): SpecFunction {
    return known(this.functions.get(name), `${this.library} has no function ${name}`)
  }

  /** Names of an enumeration's members, each value once. */
  members(enumeration: string): string[] {
    const { members } = known(this.#enums.get(enumeration), `${this.library} has no enumeration ${enumeration}`)
    const seen = new Set<number>()
    return members.filter(([, value]) => !seen.has(value) && seen.add(value)).map(([name]) => name)
  }

  requireMember(enumeration: string, name: string): void {
    const { members } = known(this.#enums.get(enumeration), `${this.library} has no enumeration ${enumeration}`)
    known(
      members.find(([one]) => one === name),
      `${enumeration} has no ${name}`,
    )
  }

  values(enumeration: string): number[] {
    const { members } = known(this.#enums.get(enumeration), `${this.library} has no enumeration ${enumeration}`)
    return [...new Set(members.map(([, value]) => value))]
  }

  /** Bytes from the start and size of a struct's field. */
  field(struct: string, name: string): { offset: number; bytes: number } {
    const { fields } = known(this.#structs.get(struct), `${this.library} has no struct ${struct}`)
    const field = known(
      fields.find((one) => one.name === name),
      `${struct} has no field ${name}`,
    )
    return { offset: field.offset, bytes: field.size * (field.count ?? 1) }
  }

  isHandle(type: string): boolean {
    return this.#file.handles.some(({ name }) => name === type)
  }

  isEnumeration(type: string): boolean {
    return this.#enums.has(type)
  }

  /** Integer kind of a name that stands for a number, as in `i32`. */
  scalar(type: string): string | undefined {
    return this.#file.scalars.find(({ name }) => name === type)?.type
  }
}

function known<T>(value: T | undefined, problem: string): T {
  if (value === undefined) throw new Error(`${problem}: the spec and the list of the sweep do not fit`)
  return value
}

/** Reads the specs in a folder; a library without one is left out. */
export function readSpecs(folder: string): ReadonlyMap<LibraryId, Spec> {
  const found = new Map<LibraryId, Spec>()
  for (const library of libraryIds) {
    const file = join(folder, `${library}.json`)
    if (existsSync(file)) found.set(library, new Spec(library, JSON.parse(readFileSync(file, 'utf8')) as SpecFile))
  }
  if (found.size === 0) throw new Error(`no spec in ${folder}`)
  return found
}
