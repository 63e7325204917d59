// A CUDA library contains its GPU code once for each architecture. A host with one kind of GPU never loads the rest, so
// the rest can be blanked. The file keeps its size and its layout, but compresses to a fraction.

const fatBinaryMagic = 0xba55ed50
const compiledCode = 2

/**
 * Copies an ELF library and keeps only GPU code compiled for one architecture.
 *
 * It blanks PTX, code for other architectures in `.nv_fatbin`, and all of `__nv_relfatbin`, which is the input of the
 * device linker that already ran. The headers stay, so that the sections can still be read.
 *
 * @param {Buffer} library the file, ELF64 little-endian
 * @param {number} architecture as in `sm_90`: 90
 * @returns {{ library: Buffer, kept: number, blanked: number }} sizes in bytes of GPU code
 */
export function slimLibrary(library, architecture) {
  const slim = Buffer.from(library)
  const size = { kept: 0, blanked: 0 }
  const sections = sectionsOf(slim)
  for (const [name, keep] of [
    ['.nv_fatbin', ({ kind, architecture: built }) => kind === compiledCode && built === architecture],
    ['__nv_relfatbin', () => false],
  ]) {
    const section = sections.get(name)
    if (!section) continue
    for (const code of gpuCode(slim, section)) {
      if (keep(code)) size.kept += code.size
      else {
        slim.fill(0, code.offset, code.offset + code.size)
        size.blanked += code.size
      }
    }
  }
  if (size.kept === 0) throw new Error(`there is no GPU code for sm_${architecture} in this library`)
  return { library: slim, ...size }
}

/** Maps each section name to its offset and size in the file. */
function sectionsOf(elf) {
  if (elf.readUInt32BE(0) !== 0x7f454c46 || elf[4] !== 2 || elf[5] !== 1) {
    throw new Error('not an ELF64 little-endian file')
  }
  const table = Number(elf.readBigUInt64LE(0x28))
  const entrySize = elf.readUInt16LE(0x3a)
  const count = elf.readUInt16LE(0x3c)
  const header = (index) => {
    const at = table + index * entrySize
    return {
      name: elf.readUInt32LE(at),
      offset: Number(elf.readBigUInt64LE(at + 0x18)),
      size: Number(elf.readBigUInt64LE(at + 0x20)),
    }
  }
  const names = header(elf.readUInt16LE(0x3e)).offset
  const sections = new Map()
  for (let index = 0; index < count; index++) {
    const { name, offset, size } = header(index)
    const start = names + name
    sections.set(elf.toString('latin1', start, elf.indexOf(0, start)), { offset, size })
  }
  return sections
}

/** Yields the payloads of all fat binaries in a section. They follow each other at multiples of 8 bytes. */
function* gpuCode(elf, { offset, size }) {
  const end = offset + size
  for (let at = offset; at + 16 <= end; ) {
    if (elf.readUInt32LE(at) !== fatBinaryMagic) {
      at += 8
      continue
    }
    const start = at + elf.readUInt16LE(at + 6)
    const stop = start + Number(elf.readBigUInt64LE(at + 8))
    for (let entry = start; entry < stop; ) {
      const headerSize = elf.readUInt32LE(entry + 4)
      const payload = Number(elf.readBigUInt64LE(entry + 8))
      if (headerSize === 0) throw new Error(`a GPU code header at ${entry} has no size`)
      yield {
        kind: elf.readUInt16LE(entry),
        architecture: elf.readUInt32LE(entry + 28),
        offset: entry + headerSize,
        size: payload,
      }
      entry += headerSize + payload
    }
    at = stop + ((8 - (stop % 8)) % 8)
  }
}
