import {
  DisposedError,
  isMemoryLike,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  propertyOf,
} from '@shoal/types'
import { pinnedOwnerOf } from '../ranges/pinnedRegistry.js'
import { hasGaps } from '../ranges/span.js'
import { isCapturing, keepForGraphs } from './capturing.js'

/** Objects that must be there when a graph runs, each with a check that throws once it is gone. */
export type Needs = ReadonlyMap<object, () => void>

/**
 * Keeps what a call on a stream used while a graph that captured the call can launch. Does nothing for streams that are
 * not captured. Hot calls ask {@link isCapturing} first.
 * @param objects memory, typed arrays over page-locked memory, and objects that are disposed of; numbers and `null` are
 * left out.
 */
export function keepCaptured(context: bigint, stream: bigint, objects: readonly unknown[], needs?: Needs): void {
  if (!isCapturing()) return
  if (needs !== undefined) for (const [object, check] of needs) keepForGraphs(context, stream, object, check)
  for (const object of objects) keepOne(context, stream, object)
}

function keepOne(context: bigint, stream: bigint, object: unknown): void {
  if (ArrayBuffer.isView(object)) {
    const owner = pinnedOwnerOf(object)
    if (owner !== undefined) keepOne(context, stream, owner)
  } else if (isMemoryLike(object)) {
    const range = rangeOf(object)
    keepForGraphs(context, stream, object, checkOfMemory(object, range), range)
  } else if (typeof object === 'object' && propertyOf(object, 'parameterType') === 'tensorMap') {
    // Kernels take a copy of it, with the address of its memory.
    keepOne(context, stream, propertyOf(object, 'memory'))
  } else if (typeof object === 'object' && object !== null) {
    const check = checkOf(object)
    if (check !== undefined) keepForGraphs(context, stream, object, check)
  }
}

/** The call has checked the answer of the protocol, and shape and strides do not matter here. */
function rangeOf(memory: MemoryLike): MemoryRange {
  return hasGaps(memory) ? memory._span : memory[memoryProtocol]
}

/** Asks the memory again. It must still be where the graph uses it. */
function checkOfMemory(memory: MemoryLike, { address, byteLength }: MemoryRange): () => void {
  let known: MemoryRange | undefined
  const gapped = hasGaps(memory) ? memory : undefined
  return () => {
    const range = gapped === undefined ? memory[memoryProtocol] : gapped._span
    if (range === known) return
    if (range.address !== address || range.byteLength < byteLength)
      throw new DisposedError(`the memory that a ${memory.constructor.name} had during the capture`)
    // A frozen answer stays as it is.
    if (Object.isFrozen(range)) known = range
  }
}

function checkOf(object: object): (() => void) | undefined {
  for (const name of ['_requireUsable', '_use', '_requireAlive'] as const) {
    if (typeof propertyOf(object, name) === 'function')
      return () => void (object as Record<string, () => void>)[name]?.()
  }
  if (typeof propertyOf(object, 'disposed') !== 'boolean') return undefined
  return () => {
    if ((object as { readonly disposed: boolean }).disposed) throw new DisposedError(object.constructor.name)
  }
}
