import { NativeMemory } from '@shoal/ffi'

/** Strings in native memory: a table of addresses, followed by the NUL-terminated strings. */
export class CStrings {
  /** The table and the strings after it. */
  readonly memory: NativeMemory
  readonly #addresses: readonly bigint[]

  constructor(texts: readonly string[]) {
    const table = texts.length * 8
    const bytes = texts.map((text) => Buffer.byteLength(text) + 1)
    this.memory = NativeMemory.allocate(bytes.reduce((sum, each) => sum + each, table) || 8)
    const { address, bytes: target } = this.memory
    const buffer = Buffer.from(target.buffer, target.byteOffset, target.byteLength)
    let offset = table
    this.#addresses = texts.map((text, index) => {
      const at = address + BigInt(offset)
      this.memory.u64[index] = at
      buffer.write(text, offset, 'utf8')
      offset += bytes[index] as number
      buffer[offset - 1] = 0
      return at
    })
  }

  /** Returns the address of a string. */
  text(index: number): bigint {
    return this.#addresses[index] as bigint
  }

  /** Returns the address of the table from an entry on: a `const char **`. */
  table(first = 0): bigint {
    return this.memory.address + BigInt(first * 8)
  }

  /** Frees the memory. */
  dispose(): void {
    this.memory.dispose()
  }
}
