import { extname } from 'node:path'
import { isInstance } from '@shoal/types'

/** Values of `CUjitInputType`. */
export const kinds = { cubin: 0, ptx: 1, fatbin: 2, object: 3, library: 4 } as const

/**
 * Kinds of linker input. An `object` is a host compiler's object file with device code. A `library` is an archive of
 * such files.
 */
export type InputKind = keyof typeof kinds

const elfMagic = 0x7f454c46
const fatBinaryMagic = 0x50ed55ba
const archiveMagic = 0x213c6172
const machineOffset = 18
const cudaMachine = 190

/** Detects an image's kind from its first bytes. Defaults to PTX. */
export function kindOfImage(image: unknown): InputKind {
  if (!isInstance(image, Uint8Array) || image.length < 20) return 'ptx'
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength)
  const magic = view.getUint32(0)
  if (magic === elfMagic) return view.getUint16(machineOffset, true) === cudaMachine ? 'cubin' : 'object'
  if (magic === fatBinaryMagic) return 'fatbin'
  return magic === archiveMagic ? 'library' : 'ptx'
}

const endings = new Map<string, InputKind>([
  ['.ptx', 'ptx'],
  ['.cubin', 'cubin'],
  ['.fatbin', 'fatbin'],
  ['.o', 'object'],
  ['.obj', 'object'],
  ['.a', 'library'],
  ['.lib', 'library'],
])

/** Detects a file's kind from its extension; undefined for unknown extensions. */
export function kindOfFile(path: string): InputKind | undefined {
  return endings.get(extname(path).toLowerCase())
}
