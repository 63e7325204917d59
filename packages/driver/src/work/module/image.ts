import { NativeMemory } from '@shoal/ffi'
import { isInstance, requireText, SystemError, wrongType } from '@shoal/types'

/** Code for a device: PTX as text, or PTX, a cubin or a fat binary as bytes. */
export type ModuleImage = string | Uint8Array

const elfMagic = 0x464c457f
const fatBinaryMagic = 0xba55ed50

/**
 * Copies an image to native memory, with a final NUL for PTX. Refuses an incomplete binary image here: the driver
 * receives no length, so it would read beyond the end.
 */
export function imageMemory(image: ModuleImage, api: string, isArchive = false): NativeMemory {
  const bytes = imageBytes(image, api)
  const memory = NativeMemory.allocate(bytes.length + 1)
  memory.bytes.set(bytes)
  // Check the copy, because shared bytes could change before the copy is made.
  if (typeof image !== 'string' && !isArchive) requireComplete(memory.bytes.subarray(0, bytes.length), api)
  return memory
}

const mostNames = 12

/**
 * Returns the text for a kernel that an image does not have. `names` may throw, because drivers before 12.4 cannot list
 * kernels.
 */
export function missingKernel(name: string, names: () => readonly string[]): string {
  let known: readonly string[]
  try {
    known = names()
  } catch {
    // The caller reports the original error.
    known = []
  }
  const mangled = known.find((each) => each.startsWith(`_Z${name.length}${name}`))
  const listed = known.slice(0, mostNames).join(', ')
  const more = known.length > mostNames ? ` and ${known.length - mostNames} more` : ''
  return [
    `kernel: ${name}`,
    ...(known.length === 0 ? [] : [`The image has ${listed}${more}.`]),
    mangled === undefined
      ? 'A C++ kernel has its plain name only if it is declared extern "C".'
      : `'${mangled}' is its mangled name; declare it extern "C" to keep the plain one.`,
  ].join('\n')
}

/** Returns a checked file path. @throws TypeError for other values; RangeError for an empty path */
export function requireImagePath(path: string | URL, api: string): string {
  if (isInstance(path, URL) && path.protocol === 'file:')
    return process.getBuiltinModule('node:url').fileURLToPath(path)
  if (typeof path !== 'string') throw wrongType(api, 'path', 'a string or a file: URL', path)
  return requireText(path, api, 'path')
}

/** Reads a file of code. @throws SystemError */
export async function readImage(path: string | URL, api: string): Promise<Uint8Array> {
  // Import this here, because otherwise every program that imports the package would load it.
  const { readFile } = await import('node:fs/promises')
  return readFile(path).catch((cause: unknown) => {
    throw new SystemError({ api, parameter: 'path', value: String(path), cause })
  })
}

function imageBytes(image: ModuleImage, api: string): Uint8Array {
  if (typeof image === 'string') {
    if (image.trim() === '') throw new RangeError(`${api}: image must not be empty`)
    if (image.includes('\0')) throw new TypeError(`${api}: image must be PTX without NUL characters`)
    requirePtx(image, api)
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
  } else if ((magic & 0xffff) === 0xfeff || (magic & 0xffff) === 0xfffe) {
    throw new TypeError(
      `${api}: image must be PTX, a cubin or a fat binary, not text in UTF-16 (it begins with its byte order mark); save it as UTF-8`,
    )
  } else if (image.subarray(0, -1).includes(0)) {
    throw new TypeError(`${api}: image must be PTX, a cubin or a fat binary, not other bytes`)
  } else if (
    (magic & 0xffffff) === 0xbfbbef ||
    !Buffer.from(image.buffer, image.byteOffset, image.length).includes('.version')
  ) {
    // Keep a byte order mark, so that the check can find it.
    requirePtx(new TextDecoder('utf-8', { ignoreBOM: true }).decode(image.subarray(0, mostLookedAt)), api)
  }
}

/** Number of bytes to check in text without `.version`. */
const mostLookedAt = 65_536

/** Refuses text that is certainly not PTX, with a hint. The driver refuses all other invalid text. */
function requirePtx(text: string, api: string): void {
  const refuse = (what: string): never => {
    throw new TypeError(`${api}: image must be PTX, a cubin or a fat binary, not ${what}`)
  }
  if (text.startsWith('\uFEFF')) refuse('text that begins with a byte order mark (U+FEFF); cut that off')
  if (text.includes('.version')) return
  if (/\b__global__\b|#include\b/.test(text.slice(0, mostLookedAt)))
    refuse("CUDA C++ source; compile() of '@shoal/driver/compile' compiles it")
  if (text.length < 4096 && !text.includes('\n') && /\.(?:ptx|cubin|fatbin|cu|o)$/i.test(text.trimEnd()))
    refuse(`a path; ${api.slice(0, api.indexOf('.'))}.loadFile reads the file '${text.slice(-60)}'`)
}

/**
 * Returns the end of a 64-bit ELF file's table. `sizeField` is the offset of its entry size, followed by its entry
 * count.
 */
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
