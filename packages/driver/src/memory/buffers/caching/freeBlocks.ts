import type { Stream } from '../../../core/stream/stream.js'
import type { Block, Segment } from './block.js'

const kibibyte = 1024
const mebibyte = 1024 * kibibyte

/** Block sizes are multiples of this. */
const roundedTo = 512
const largestSmall = mebibyte
/** Blocks below this size share a segment of `sharedSegment` bytes. */
const largestShared = 10 * mebibyte
const sharedSegment = 20 * mebibyte
/** Larger blocks have their own segment. Segment sizes of single and small blocks are multiples of this. */
const ownSegment = 2 * mebibyte

/** Returns the size of the block that serves a request, in bytes. */
export function blockSize(byteLength: number): number {
  return Math.ceil(byteLength / roundedTo) * roundedTo
}

/** Returns the usual and the smallest size of a new segment for a block of `size` bytes. */
export function segmentSizes(size: number): readonly [usual: number, least: number] {
  const least = Math.ceil(size / ownSegment) * ownSegment
  return [isSmall(size) || size >= largestShared ? least : sharedSegment, least]
}

/** Whether a block is small. Small blocks have separate segments, so that they do not keep large ones in use. */
export function isSmall(size: number): boolean {
  return size <= largestSmall
}

/**
 * The segments of one stream, and their free blocks by size. Work of the same stream runs in order, so later work can
 * reuse a block immediately.
 */
export class FreeBlocks {
  /** The newest object for this stream. */
  stream: Stream
  readonly segments = new Set<Segment>()
  // Separate maps: a large request must not use a segment of small blocks, nor a small request a large segment.
  readonly #small = new Map<number, Block[]>()
  readonly #large = new Map<number, Block[]>()
  /** Whether returned blocks may have free neighbors. */
  #canMerge = false

  constructor(stream: Stream) {
    this.stream = stream
  }

  /** Takes a free block of exactly this size and marks it as in use; undefined if there is none. */
  takeExact(size: number): Block | undefined {
    const block = (isSmall(size) ? this.#small : this.#large).get(size)?.pop()
    if (block !== undefined) block.isFree = false
    return block
  }

  /** Takes a part of a larger free block, merging free neighbors if necessary; undefined if there is none. */
  takePart(size: number): Block | undefined {
    const found = this.#smallestFrom(size) ?? (this.#merge() ? this.#smallestFrom(size) : undefined)
    return found === undefined ? undefined : this.#cut(found, size)
  }

  /** Takes a block from a new segment. */
  takeFrom(segment: Segment, size: number): Block {
    this.segments.add(segment)
    return this.#cut(segment.first, size)
  }

  /** Adds a returned block to the free ones. */
  put(block: Block): void {
    block.isFree = true
    this.#canMerge = true
    const bins = block.segment.isSmall ? this.#small : this.#large
    const bin = bins.get(block.byteLength)
    if (bin === undefined) bins.set(block.byteLength, [block])
    else bin.push(block)
  }

  /** Removes completely free segments, largest first, until they have `byteLength` bytes or none is left. */
  takeFreeSegments(byteLength = Number.POSITIVE_INFINITY): Segment[] {
    this.#merge()
    const taken: Segment[] = []
    let bytes = 0
    const free = [...this.segments].filter(({ isFree }) => isFree).sort((a, b) => b.byteLength - a.byteLength)
    for (const segment of free) {
      if (bytes >= byteLength) break
      taken.push(segment)
      bytes += segment.byteLength
      this.segments.delete(segment)
    }
    if (taken.length > 0) this.#sort()
    return taken
  }

  #cut(block: Block, size: number): Block {
    block.isFree = false
    const rest = block.byteLength - size
    // Small requests would not use the rest of a large block.
    if (block.segment.isSmall ? rest > 0 : !isSmall(rest)) this.put(block.split(size))
    return block
  }

  #smallestFrom(size: number): Block | undefined {
    const bins = isSmall(size) ? this.#small : this.#large
    let least = Number.POSITIVE_INFINITY
    for (const [binSize, bin] of bins) if (binSize >= size && binSize < least && bin.length > 0) least = binSize
    return bins.get(least)?.pop()
  }

  /** Merges free neighbors. Returns whether a merge was possible. */
  #merge(): boolean {
    if (!this.#canMerge) return false
    this.#sort()
    this.#canMerge = false
    return true
  }

  #sort(): void {
    this.#small.clear()
    this.#large.clear()
    for (const { first } of this.segments) {
      for (let block: Block | undefined = first; block !== undefined; block = block.next) {
        if (!block.isFree) continue
        block.takeInFree()
        this.put(block)
      }
    }
  }
}
