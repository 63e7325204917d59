import { CUjitInputType } from '@shoal/cuda-sys/driver'
import { expect, test } from 'vitest'
import { kindOfFile, kindOfImage, kinds } from '../src/work/linker/inputs.js'

test('linker input kinds have the numbers of CUjitInputType', () => {
  expect(kinds).toEqual({
    cubin: CUjitInputType.CU_JIT_INPUT_CUBIN,
    ptx: CUjitInputType.CU_JIT_INPUT_PTX,
    fatbin: CUjitInputType.CU_JIT_INPUT_FATBINARY,
    object: CUjitInputType.CU_JIT_INPUT_OBJECT,
    library: CUjitInputType.CU_JIT_INPUT_LIBRARY,
  })
})

/** Returns 20 bytes that start with a magic number. Bytes 18 and 19 of an ELF file are its machine. */
function image(magic: readonly number[], machine = 0): Uint8Array {
  const bytes = new Uint8Array(24).subarray(4)
  bytes.set(magic)
  new DataView(bytes.buffer, bytes.byteOffset).setUint16(18, machine, true)
  return bytes
}

const elf = [0x7f, 0x45, 0x4c, 0x46]

test.each([
  ['a cubin', image(elf, 190), 'cubin'],
  ['an object of the host', image(elf, 62), 'object'],
  ['one of 64-bit Arm', image(elf, 183), 'object'],
  ['a fat binary', image([0x50, 0xed, 0x55, 0xba]), 'fatbin'],
  ['an archive', image([0x21, 0x3c, 0x61, 0x72]), 'library'],
  ['PTX in bytes', new TextEncoder().encode('.version 8.0\n.target sm_80\n'), 'ptx'],
  ['PTX in a text', '.version 8.0', 'ptx'],
  ['data too short for a header', image(elf, 190).subarray(0, 19), 'ptx'],
])('%s is detected by its first bytes', (_what, data, kind) => {
  expect(kindOfImage(data)).toBe(kind)
})

test.each([
  ['a.ptx', 'ptx'],
  ['/b/a.CUBIN', 'cubin'],
  ['a.fatbin', 'fatbin'],
  ['a.o', 'object'],
  ['a.obj', 'object'],
  ['liba.a', 'library'],
  ['a.lib', 'library'],
  ['a.cu', undefined],
  ['ptx', undefined],
  ['a.constructor', undefined],
  ['b.ptx/a', undefined],
])('the kind of a linker input file follows from its extension: %s', (path, kind) => {
  expect(kindOfFile(path)).toBe(kind)
})
