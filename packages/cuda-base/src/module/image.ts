import { NativeMemory } from '@shoal/ffi'
import { isInstance, requireText, SystemError, wrongType } from '@shoal/types'

/** Code for a device: PTX as text, or PTX, a cubin or a fat binary as bytes. */
export type ModuleImage = string | Uint8Array

const elfMagic = 0x464c457f
const fatBinaryMagic = 0xba55ed50

/**
 * The image in native memory, with the NUL that ends PTX. Binary images carry no length the driver could check, so one
 * that is cut off is refused here: the driver would read beyond its end.
 */
export function imageMemory(image: ModuleImage, api: string, isArchive = false): NativeMemory {
  const bytes = imageBytes(image, api)
  const memory = NativeMemory.allocate(bytes.length + 1)
  memory.bytes.set(bytes)
  // The copy is what is looked at: bytes that threads share could change until it is made.
  if (typeof image !== 'string' && !isArchive) requireComplete(memory.bytes.subarray(0, bytes.length), api)
  return memory
}

/** The path of a file. @throws TypeError for what is no path; RangeError for an empty one */
export function requireImagePath(path: string | URL, api: string): string {
  if (isInstance(path, URL) && path.protocol === 'file:')
    return process.getBuiltinModule('node:url').fileURLToPath(path)
  if (typeof path !== 'string') throw wrongType(api, 'path', 'a string or a file: URL', path)
  return requireText(path, api, 'path')
}

/** The contents of a file of code. @throws SystemError */
export async function readImage(path: string | URL, api: string): Promise<Uint8Array> {
  // Loaded here and not above: every program that imports this package would pay for it.
  const { readFile } = await import('node:fs/promises')
  return readFile(path).catch((cause: unknown) => {
    throw new SystemError({ api, parameter: 'path', value: String(path), cause })
  })
}

function imageBytes(image: ModuleImage, api: string): Uint8Array {
  if (typeof image === 'string') {
    if (image.trim() === '') throw new RangeError(`${api}: image must not be empty`)
    if (image.includes('\0')) throw new TypeError(`${api}: image must be PTX without NUL characters`)
    return new TextEncoder().encode(image)
  }
  if (!isInstance(image, Uint8Array)) throw wrongType(api, 'image', 'PTX text or a Uint8Array', image)
  if (image.length === 0) throw new RangeError(`${api}: image must not be empty`)
  return image
}

function requireComplete(image: Uint8Array, api: string): void {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength)
  const magic = image.length < 4 ? 0 : view.getUint32(0, true)
  if (magic === elfMagic) {
    requireBytes(image, 64, 'its ELF header', api)
    requireBytes(image, tableEnd(view, 0x28, 0x3a), 'its section table', api)
    requireBytes(image, tableEnd(view, 0x20, 0x36), 'its program headers', api)
  } else if (magic === fatBinaryMagic) {
    requireBytes(image, 16, 'its header', api)
    requireBytes(image, view.getUint16(6, true) + Number(view.getBigUint64(8, true)), 'its contents', api)
  } else if (image.subarray(0, -1).includes(0)) {
    throw new TypeError(`${api}: image must be PTX, a cubin or a fat binary, not other bytes`)
  }
}

/** Where a table of a 64-bit ELF file ends: its offset, and next to each other its entry size and entry count. */
function tableEnd(view: DataView, offsetField: number, sizeField: number): number {
  const size = view.getUint16(sizeField, true) * view.getUint16(sizeField + 2, true)
  return size === 0 ? 0 : Number(view.getBigUint64(offsetField, true)) + size
}

function requireBytes(image: Uint8Array, end: number, part: string, api: string): void {
  if (end <= image.length) return
  throw new RangeError(
    `${api}: image must be complete, not cut off: ${part} would end at byte ${end}, and there are ${image.length}`,
  )
}
