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

/** Objects that a graph needs at each launch. Each has a check that throws after the object was disposed of. */
export type Needs = ReadonlyMap<object, () => void>

/**
 * Keeps the objects of a call on a captured stream while the graph can launch. Does nothing for other streams. Hot
 * calls test {@link isCapturing} first.
 * @param objects memory, typed arrays over page-locked memory, and disposable objects; numbers and `null` are ignored
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
    // A kernel copies this object, which contains the address of its memory.
    keepOne(context, stream, propertyOf(object, 'memory'))
  } else if (typeof object === 'object' && object !== null) {
    const check = checkOf(object)
    if (check !== undefined) keepForGraphs(context, stream, object, check)
  }
}

/** Reads the memory's range without checks: the call has checked it, and shape and strides do not matter here. */
function rangeOf(memory: MemoryLike): MemoryRange {
  return hasGaps(memory) ? memory._span : memory[memoryProtocol]
}

/** Returns a check that the memory still has the address that the graph uses. */
function checkOfMemory(memory: MemoryLike, { address, byteLength }: MemoryRange): () => void {
  let known: MemoryRange | undefined
  const gapped = hasGaps(memory) ? memory : undefined
  return () => {
    const range = gapped === undefined ? memory[memoryProtocol] : gapped._span
    if (range === known) return
    if (range.address !== address || range.byteLength < byteLength)
      throw new DisposedError(`the memory that a ${memory.constructor.name} had during the capture`)
    // A frozen protocol answer cannot change, so later checks can compare it by identity.
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
