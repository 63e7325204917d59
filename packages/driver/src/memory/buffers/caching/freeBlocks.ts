import type { Stream } from '../../../core/stream/stream.js'
import type { Block, Segment } from './block.js'

const kibibyte = 1024
const mebibyte = 1024 * kibibyte

/** Sizes are multiples of so much. */
const roundedTo = 512
const largestSmall = mebibyte
/** Larger blocks share a segment of `sharedSegment` bytes up to this size. */
const largestShared = 10 * mebibyte
const sharedSegment = 20 * mebibyte
/** Still larger ones have a segment each. Segments for one, and for small blocks, are multiples of this. */
const ownSegment = 2 * mebibyte

/** Bytes of the block that serves a request. */
export function blockSize(byteLength: number): number {
  return Math.ceil(byteLength / roundedTo) * roundedTo
}

/** Bytes of the segment that a block of `size` bytes is taken from when none is free, and the least that serves. */
export function segmentSizes(size: number): readonly [usual: number, least: number] {
  const least = Math.ceil(size / ownSegment) * ownSegment
  return [isSmall(size) || size >= largestShared ? least : sharedSegment, least]
}

/** Small blocks have segments of their own, so that they do not hold large ones. */
export function isSmall(size: number): boolean {
  return size <= largestSmall
}

/**
 * The segments of one stream, and their free blocks by size. What that stream does next comes after what it did before,
 * so its own work may use them at once.
 */
export class FreeBlocks {
  /** The object that the stream was last known by. */
  stream: Stream
  readonly segments = new Set<Segment>()
  // Apart, as a large request must not hold a segment of small blocks, nor a small one a large segment.
  readonly #small = new Map<number, Block[]>()
  readonly #large = new Map<number, Block[]>()
  /** Whether blocks were given back that may lie beside other free ones. */
  #canMerge = false

  constructor(stream: Stream) {
    this.stream = stream
  }

  /** A block of exactly that size, marked as in use; undefined where none is free. */
  takeExact(size: number): Block | undefined {
    const block = (isSmall(size) ? this.#small : this.#large).get(size)?.pop()
    if (block !== undefined) block.isFree = false
    return block
  }

  /** A block from a larger one, which may first be put together from several; undefined where there is none. */
  takePart(size: number): Block | undefined {
    const found = this.#smallestFrom(size) ?? (this.#merge() ? this.#smallestFrom(size) : undefined)
    return found === undefined ? undefined : this.#cut(found, size)
  }

  /** A block of a segment that has just come from the device. */
  takeFrom(segment: Segment, size: number): Block {
    this.segments.add(segment)
    return this.#cut(segment.first, size)
  }

  /** Takes a block back. */
  put(block: Block): void {
    block.isFree = true
    this.#canMerge = true
    const bins = block.segment.isSmall ? this.#small : this.#large
    const bin = bins.get(block.byteLength)
    if (bin === undefined) bins.set(block.byteLength, [block])
    else bin.push(block)
  }

  /**
   * Takes out segments that nobody has any of, the largest first, until at least `byteLength` bytes are there or none
   * is left.
   */
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
    // Small requests would not use what is left of a large block.
    if (block.segment.isSmall ? rest > 0 : !isSmall(rest)) this.put(block.split(size))
    return block
  }

  #smallestFrom(size: number): Block | undefined {
    const bins = isSmall(size) ? this.#small : this.#large
    let least = Number.POSITIVE_INFINITY
    for (const [binSize, bin] of bins) if (binSize >= size && binSize < least && bin.length > 0) least = binSize
    return bins.get(least)?.pop()
  }

  /** Puts neighbours together that are free. Gives whether that may have changed anything. */
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
