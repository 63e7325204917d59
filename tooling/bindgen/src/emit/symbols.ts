import type { LibrarySpecFile, StructSpec } from '../spec/types.js'
import { enumFileOf } from './areas.js'
import type { SourceFile } from './source.js'

/** Enumerations with values that the header does not name: operators created by the program. */
export const openEnums: ReadonlySet<string> = new Set(['ncclRedOp_t'])

/** Maps each name to the generated file that declares it. */
export class SymbolTable {
  readonly libraryVariable: string
  readonly #files = new Map<string, string>()
  readonly #structs: ReadonlyMap<string, StructSpec>
  readonly structFiles: ReadonlyMap<string, string>

  constructor(spec: LibrarySpecFile, structFiles: ReadonlyMap<string, string>) {
    this.libraryVariable = spec.library
    this.structFiles = structFiles
    this.#structs = new Map(spec.structs.map((entry) => [entry.name, entry]))
    for (const { name } of [...spec.handles, ...spec.callbacks, ...spec.scalars, { name: 'CUdeviceptr' }])
      this.#files.set(name, 'handles.gen.ts')
    for (const { name, aliases } of spec.enums)
      for (const each of [name, ...aliases]) this.#files.set(each, `enums/${enumFileOf(name)}.gen.ts`)
    for (const [name, file] of structFiles) this.#files.set(name, file)
  }

  /** Imports a generated type into a file. */
  typeName(file: SourceFile, name: string): string {
    const path = this.#locate(name)
    return path === file.path ? name : file.useType(relative(file.path, path), name)
  }

  /** Imports a generated value into a file. */
  valueName(file: SourceFile, name: string): string {
    const path = this.#locate(name)
    return path === file.path ? name : file.use(relative(file.path, path), name)
  }

  /** True if a struct has a floating-point member, at any depth. */
  hasFloats(name: string): boolean {
    const entry = this.#structs.get(name)
    if (entry === undefined) throw new Error(`the struct ${name} is used but declared nowhere in the spec`)
    return entry.fields.some(({ type }) =>
      type.kind === 'struct' ? this.hasFloats(type.type) : type.kind === 'f32' || type.kind === 'f64',
    )
  }

  #locate(name: string): string {
    const path = this.#files.get(name)
    if (path === undefined) throw new Error(`${name} is used but declared nowhere in the spec`)
    return path
  }
}

function relative(from: string, to: string): string {
  const [fromFolder, toFolder] = [from, to].map((path) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : ''))
  const target = to.replace(/\.ts$/, '.js')
  if (fromFolder === toFolder) return `./${target.slice(target.indexOf('/') + 1)}`
  return fromFolder === '' ? `./${target}` : `../${target}`
}
