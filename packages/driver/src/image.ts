import { NativeMemory } from '@shoal/ffi'
import { describeValue } from '@shoal/types'

/** Code for a device: PTX as text, or PTX, a cubin or a fat binary as bytes. */
export type ModuleImage = string | Uint8Array

const elfMagic = 0x464c457f
const fatBinaryMagic = 0xba55ed50

/**
 * The image in native memory, with the NUL that ends PTX. Binary images carry no length the driver could check, so a
 * truncated one is refused here: the driver would read beyond its end.
 */
export function imageMemory(image: ModuleImage): NativeMemory {
  const bytes = imageBytes(image)
  const memory = NativeMemory.allocate(bytes.length + 1)
  memory.bytes.set(bytes)
  return memory
}

function imageBytes(image: ModuleImage): Uint8Array {
  if (typeof image === 'string') {
    if (image.trim() === '') throw new RangeError('the image is empty')
    if (image.includes('\0')) throw new TypeError('PTX must not contain a NUL character')
    return new TextEncoder().encode(image)
  }
  if (!(image instanceof Uint8Array)) {
    throw new TypeError(`image must be PTX text or a Uint8Array, not ${describeValue(image)}`)
  }
  if (image.length === 0) throw new RangeError('the image is empty')
  requireComplete(image)
  return image
}

function requireComplete(image: Uint8Array): void {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength)
  const magic = image.length < 4 ? 0 : view.getUint32(0, true)
  if (magic === elfMagic) {
    requireBytes(image, 64, 'its ELF header')
    requireBytes(image, tableEnd(view, 0x28, 0x3a), 'its section table')
    requireBytes(image, tableEnd(view, 0x20, 0x36), 'its program headers')
  } else if (magic === fatBinaryMagic) {
    requireBytes(image, 16, 'its header')
    requireBytes(image, view.getUint16(6, true) + Number(view.getBigUint64(8, true)), 'its contents')
  } else if (image.subarray(0, -1).includes(0)) {
    throw new TypeError('the image is neither PTX, nor a cubin, nor a fat binary')
  }
}

/** Where a table of a 64-bit ELF file ends: its offset, and next to each other its entry size and entry count. */
function tableEnd(view: DataView, offsetField: number, sizeField: number): number {
  const size = view.getUint16(sizeField, true) * view.getUint16(sizeField + 2, true)
  return size === 0 ? 0 : Number(view.getBigUint64(offsetField, true)) + size
}

function requireBytes(image: Uint8Array, end: number, part: string): void {
  if (end <= image.length) return
  throw new RangeError(`the image is cut off: ${part} would end at byte ${end}, and there are ${image.length}`)
}
