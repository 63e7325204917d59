// The part of the spec in tooling/bindgen/spec that the sweep reads.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type EnumSpec,
  type FunctionSpec,
  hostLibraryNames,
  type IntegerKind,
  type LibraryName,
  type LibrarySpecFile,
  type StructSpec,
} from '@shoal/bindgen/dist/spec/types.js'

/** One library's spec, with lookup by name. */
export class Spec {
  readonly library: LibraryName
  readonly headerVersion: number
  readonly functions: ReadonlyMap<string, FunctionSpec>
  readonly #file: LibrarySpecFile
  readonly #enums: ReadonlyMap<string, EnumSpec>
  readonly #owners: ReadonlyMap<string, string>
  readonly #structs: ReadonlyMap<string, StructSpec>

  constructor(library: LibraryName, file: LibrarySpecFile) {
    this.library = library
    this.headerVersion = file.headerVersion
    this.functions = new Map(file.functions.map((one) => [one.name, one]))
    this.#file = file
    this.#enums = new Map(file.enums.map((one) => [one.name, one]))
    const owners = file.enums.flatMap((one) => one.members.map(([member]) => [member, one.name] as const))
    this.#owners = new Map(owners.reverse())
    this.#structs = new Map(file.structs.map((one) => [one.name, one]))
  }

  function(name: string): FunctionSpec {
    return known(this.functions.get(name), `${this.library} has no function ${name}`)
  }

  /** Returns the members of an enumeration, each value once. */
  members(enumeration: string): string[] {
    const seen = new Set<number>()
    return this.#membersOf(enumeration)
      .filter(([, value]) => !seen.has(value) && seen.add(value))
      .map(([name]) => name)
  }

  /** Returns the enumeration that has a member of this name. */
  enumerationOf(member: string): string | undefined {
    return this.#owners.get(member)
  }

  values(enumeration: string): number[] {
    return [...new Set(this.#membersOf(enumeration).map(([, value]) => value))]
  }

  #membersOf(enumeration: string): EnumSpec['members'] {
    return known(this.#enums.get(enumeration), `${this.library} has no enumeration ${enumeration}`).members
  }

  /** Returns the offset and size of a struct's field, in bytes. */
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

  /** Returns the integer kind of a type name, as in `i32`, if the type is a number. */
  scalar(type: string): IntegerKind | undefined {
    return this.#file.scalars.find(({ name }) => name === type)?.type
  }
}

function known<T>(value: T | undefined, problem: string): T {
  if (value === undefined) throw new Error(`${problem}: the spec and the list of the sweep do not fit`)
  return value
}

/** Reads the specs in a folder. Libraries without a spec are left out. */
export function readSpecs(folder: string): ReadonlyMap<LibraryName, Spec> {
  const found = new Map<LibraryName, Spec>()
  for (const library of hostLibraryNames) {
    const file = join(folder, `${library}.json`)
    if (existsSync(file))
      found.set(library, new Spec(library, JSON.parse(readFileSync(file, 'utf8')) as LibrarySpecFile))
  }
  if (found.size === 0) throw new Error(`no spec in ${folder}`)
  return found
}
