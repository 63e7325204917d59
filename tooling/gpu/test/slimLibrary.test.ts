import { describe, expect, it } from 'vitest'
import { slimLibrary } from '../src/slimLibrary.mjs'

/** Makes an entry of a fat binary: 64 bytes of header, then the code. */
function code(kind: number, architecture: number, bytes: Buffer): Buffer {
  const header = Buffer.alloc(64)
  header.writeUInt16LE(kind, 0)
  header.writeUInt32LE(64, 4)
  header.writeBigUInt64LE(BigInt(bytes.length), 8)
  header.writeUInt32LE(architecture, 28)
  return Buffer.concat([header, bytes])
}

function fatBinary(...entries: Buffer[]): Buffer {
  const body = Buffer.concat(entries)
  const header = Buffer.alloc(16)
  header.writeUInt32LE(0xba55ed50, 0)
  header.writeUInt16LE(1, 4)
  header.writeUInt16LE(16, 6)
  header.writeBigUInt64LE(BigInt(body.length), 8)
  const end = Buffer.alloc((8 - (body.length % 8)) % 8)
  return Buffer.concat([header, body, end])
}

/** Makes an ELF file of only these sections and their names. */
function elf(sections: Record<string, Buffer>): Buffer {
  const all = [...Object.entries({ '': Buffer.alloc(0), ...sections }), ['.shstrtab', Buffer.alloc(0)] as const]
  const names = Buffer.from(all.map(([name]) => `${name}\0`).join(''), 'latin1')
  const file = Buffer.alloc(64)
  file.writeUInt32BE(0x7f454c46, 0)
  file[4] = 2
  file[5] = 1
  const contents: Buffer[] = [file]
  const headers: Buffer[] = []
  let offset = 64
  let nameAt = 0
  for (const [name, given] of all) {
    const content = name === '.shstrtab' ? names : given
    const header = Buffer.alloc(64)
    header.writeUInt32LE(nameAt, 0)
    header.writeBigUInt64LE(BigInt(offset), 0x18)
    header.writeBigUInt64LE(BigInt(content.length), 0x20)
    headers.push(header)
    contents.push(content)
    offset += content.length
    nameAt += name.length + 1
  }
  file.writeBigUInt64LE(BigInt(offset), 0x28)
  file.writeUInt16LE(64, 0x3a)
  file.writeUInt16LE(all.length, 0x3c)
  file.writeUInt16LE(all.length - 1, 0x3e)
  return Buffer.concat([...contents, ...headers])
}

const bytes = (value: number, length: number) => Buffer.alloc(length, value)

describe('slimLibrary', () => {
  const library = elf({
    '.text': bytes(7, 24),
    '.nv_fatbin': Buffer.concat([
      fatBinary(code(2, 80, bytes(1, 40)), code(2, 90, bytes(2, 21))),
      fatBinary(code(1, 90, bytes(3, 16)), code(2, 90, bytes(4, 8))),
    ]),
    __nv_relfatbin: fatBinary(code(2, 90, bytes(5, 32))),
  })

  it('keeps compiled code of one architecture and everything except GPU code', () => {
    const slim = slimLibrary(library, 90)
    expect(slim).toMatchObject({ kept: 21 + 8, blanked: 40 + 16 + 32 })
    expect(slim.library.length).toBe(library.length)
    const left = (value: number, length: number) => slim.library.includes(bytes(value, length))
    expect([left(2, 21), left(4, 8), left(7, 24)]).toEqual([true, true, true])
    expect([left(1, 8), left(3, 8), left(5, 8)]).toEqual([false, false, false])
    expect(library.includes(bytes(1, 40))).toBe(true)
  })

  it('refuses a library without that architecture, and other files', () => {
    expect(() => slimLibrary(library, 100)).toThrow('no GPU code for sm_100')
    expect(() => slimLibrary(Buffer.alloc(128), 90)).toThrow('not an ELF64')
  })
})
