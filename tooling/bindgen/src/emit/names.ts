import type { ConstantSpec, EnumSpec, LibrarySpecFile } from '../spec/types.js'
import { enumFileOf } from './areas.js'
import { SourceFile } from './source.js'
import { openEnums, type SymbolTable } from './symbols.js'

/** Opaque handles, function addresses and branded numbers. */
export function emitHandles(spec: LibrarySpecFile): SourceFile {
  const file = new SourceFile('handles.gen.ts')
  for (const { name, ctype, brand } of [...spec.handles].sort(byName)) {
    file.useType('@shoal/types', 'Branded')
    file.add(
      `/** \`${ctype}\`. */`,
      `export type ${name} = Branded<bigint, '${brand}'>`,
      `/** Takes a bigint read from memory as a \`${name}\`. */`,
      `export const ${name} = (value: bigint): ${name} => value as ${name}`,
      '',
    )
  }
  if (usesDeviceAddresses(spec)) {
    file.add(
      '/** Address in device memory. A bare bigint will do; a handle will not. */',
      "export type CUdeviceptr = bigint & { readonly __brand?: 'CUdeviceptr' }",
      '/** Takes a bigint read from memory as a `CUdeviceptr`. */',
      'export const CUdeviceptr = (value: bigint): CUdeviceptr => value as CUdeviceptr',
      '',
    )
  }
  for (const { name, ctype } of [...spec.callbacks].sort(byName)) {
    file.add(
      `/** Address of a C function \`${ctype}\`. */`,
      `export type ${name} = bigint & { readonly __brand?: '${name}' }`,
      '',
    )
  }
  for (const { name, ctype, type, branded } of [...spec.scalars].sort(byName)) {
    const plain = type === 'i64' || type === 'u64' ? 'bigint' : 'number'
    const brand = spec.scalars.find((other) => other.branded && other.name === ctype)?.name ?? name
    if (!branded) {
      file.add(`/** \`${ctype}\`. */`, `export type ${name} = ${plain}`, '')
      continue
    }
    file.useType('@shoal/types', 'Branded')
    file.add(
      `/** \`${ctype}\`. */`,
      `export type ${name} = Branded<${plain}, '${brand}'>`,
      `/** Takes a ${plain} read from memory as a \`${name}\`. */`,
      `export const ${name} = (value: ${plain}): ${name} => value as ${name}`,
      '',
    )
  }
  return file
}

function usesDeviceAddresses(spec: LibrarySpecFile): boolean {
  return JSON.stringify(spec).includes('"kind":"deviceptr"')
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

/** Enumerations, each as a const object and a type of the same name. */
export function emitEnums(spec: LibrarySpecFile, symbols: SymbolTable): SourceFile[] {
  const files = new Map<string, SourceFile>()
  for (const entry of spec.enums) {
    const subject = enumFileOf(entry.name)
    const file = files.get(subject) ?? new SourceFile(`enums/${subject}.gen.ts`)
    files.set(subject, file)
    emitEnum(file, symbols, entry)
  }
  return [...files.values()]
}

function emitEnum(file: SourceFile, symbols: SymbolTable, { name, aliases, members, brand }: EnumSpec): void {
  const suffix = brand === undefined ? '' : ` as ${symbols.typeName(file, brand)}`
  const values = `(typeof ${name})[keyof typeof ${name}]`
  file.add(
    `/** C enumeration \`${name}\`. */`,
    `export const ${name} = {`,
    ...members.map(([member, value]) => `  ${member}: ${value}${suffix},`),
    '} as const',
    `export type ${name} = ${openEnums.has(name) ? `${values} | (number & {})` : values}`,
  )
  for (const alias of aliases) {
    if (/_v\d+$/.test(alias)) continue
    file.add(`/** Same as {@link ${name}}. */`, `export const ${alias} = ${name}`, `export type ${alias} = ${name}`)
  }
  file.add('')
}

/** Macros with the value of a number or handle. */
export function emitConstants(spec: LibrarySpecFile, symbols: SymbolTable): SourceFile {
  const file = new SourceFile('constants.gen.ts')
  for (const constant of spec.constants) file.add(`export const ${constant.name} = ${literal(file, symbols, constant)}`)
  return file
}

function literal(file: SourceFile, symbols: SymbolTable, { value, kind, type }: ConstantSpec): string {
  if (kind !== 'bigint') return value
  if (type === undefined || type === 'pointer') return `${value}n`
  return `${value}n as ${symbols.typeName(file, type)}`
}
