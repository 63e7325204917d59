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

const mostNames = 12

/** What to say of a kernel that an image does not have. `names` may throw: drivers before 12.4 cannot list them. */
export function missingKernel(name: string, names: () => readonly string[]): string {
  let known: readonly string[]
  try {
    known = names()
  } catch {
    // The error that led here is the one to report.
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
    // A byte order mark would be left out.
    requirePtx(new TextDecoder('utf-8', { ignoreBOM: true }).decode(image.subarray(0, mostLookedAt)), api)
  }
}

/** Of text without `.version`, what is looked at. */
const mostLookedAt = 65_536

/** Refuses text that is certainly no PTX, with what to do instead. The driver refuses all else. */
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
