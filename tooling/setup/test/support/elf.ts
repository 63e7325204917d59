import { readFileSync } from 'node:fs'

export interface Import {
  readonly name: string
  readonly version: string | undefined
  /** Whether the library also loads without this symbol. */
  readonly isWeak: boolean
}

/** The symbols that a shared library imports and exports. */
export interface SharedLibrary {
  /** `e_machine`: 62 for x86-64, 183 for 64-bit Arm. */
  readonly machine: number
  /** Files that the loader loads with this one. */
  readonly needed: readonly string[]
  /** Imported symbols, with their version if they have one. */
  readonly imports: readonly Import[]
  readonly exports: readonly string[]
  /** Every required version, even if no symbol has it. */
  readonly versions: readonly string[]
}

const tags = {
  needed: 1,
  strings: 5,
  symbols: 6,
  symbolVersions: 0x6ffffff0,
  neededVersions: 0x6ffffffe,
  neededCount: 0x6fffffff,
}
const [symbolTable, dynamicTable] = [11, 6]

/** Reads the dynamic tables of a 64-bit little-endian ELF file. */
export function readSharedLibrary(path: string): SharedLibrary {
  const file = readFileSync(path)
  if (file.readUInt32BE(0) !== 0x7f454c46 || file[4] !== 2 || file[5] !== 1)
    throw new Error(`${path} is no such ELF file`)
  const word = (at: number): number => Number(file.readBigUInt64LE(at))
  const sections = Array.from({ length: file.readUInt16LE(60) }, (_, index) => {
    const at = word(40) + index * file.readUInt16LE(58)
    return { type: file.readUInt32LE(at + 4), address: word(at + 16), offset: word(at + 24), size: word(at + 32) }
  })
  const section = (type: number): { offset: number; size: number } => {
    const found = sections.find((one) => one.type === type)
    if (found === undefined) throw new Error(`${path} has no section of type ${type}`)
    return found
  }
  const dynamic = section(dynamicTable)
  const entries = Array.from({ length: dynamic.size / 16 }, (_, index) => {
    const at = dynamic.offset + index * 16
    return { tag: word(at), value: word(at + 8) }
  })
  const value = (tag: number): number | undefined => entries.find((entry) => entry.tag === tag)?.value
  const offsetOf = (tag: number): number | undefined =>
    sections.find((one) => one.address !== 0 && one.address === value(tag))?.offset
  const strings = offsetOf(tags.strings) ?? Number.NaN
  const text = (at: number): string => file.toString('utf8', strings + at, file.indexOf(0, strings + at))

  const versions = new Map<number, string>()
  let at = offsetOf(tags.neededVersions) ?? 0
  for (let left = value(tags.neededCount) ?? 0; left > 0; left--) {
    let one = at + file.readUInt32LE(at + 8)
    for (let count = file.readUInt16LE(at + 2); count > 0; count--) {
      versions.set(file.readUInt16LE(one + 6) & 0x7fff, text(file.readUInt32LE(one + 8)))
      one += file.readUInt32LE(one + 12)
    }
    at += file.readUInt32LE(at + 12)
  }

  const symbols = section(symbolTable)
  const versionOf = offsetOf(tags.symbolVersions) ?? Number.NaN
  const imports: Import[] = []
  const exports: string[] = []
  for (let index = 1; index < symbols.size / 24; index++) {
    const symbol = symbols.offset + index * 24
    const name = text(file.readUInt32LE(symbol))
    if (name === '') continue // a section's symbol
    if (file.readUInt16LE(symbol + 6) !== 0) exports.push(name)
    else {
      const version = versions.get(file.readUInt16LE(versionOf + index * 2) & 0x7fff)
      imports.push({ name, version, isWeak: file.readUInt8(symbol + 4) >> 4 === 2 })
    }
  }
  const needed = entries.filter((entry) => entry.tag === tags.needed).map((entry) => text(entry.value))
  return { machine: file.readUInt16LE(18), needed, imports, exports, versions: [...versions.values()] }
}
