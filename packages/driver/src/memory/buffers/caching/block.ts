import type { Context } from '../../../core/context/context.js'
import type { Stream } from '../../../core/stream/stream.js'
import { halvesOf, type U64Halves } from '../../../core/u64Halves.js'
import type { FreeBlocks } from './freeBlocks.js'

/** The owner of blocks, which takes them back. */
export interface BlockOwner {
  readonly context: Context
  /**
   * Takes a block back.
   * @param stream another stream whose work may still use the block
   */
  giveBack(block: Block, stream: Stream | undefined): void
  /** Registers another stream whose work uses the block. */
  addUser(block: Block, stream: Stream): void
}

/** Memory from one allocation of the source. Its blocks lie in it without gaps. */
export class Segment {
  readonly address: bigint
  readonly byteLength: number
  /** Whether the segment is for small blocks. */
  readonly isSmall: boolean
  readonly first: Block

  constructor(owner: BlockOwner, freeBlocks: FreeBlocks, address: bigint, byteLength: number, isSmall: boolean) {
    this.address = address
    this.byteLength = byteLength
    this.isSmall = isSmall
    this.first = new Block(owner, freeBlocks, this, address, byteLength)
  }

  /** Whether no part of the segment is in use. */
  get isFree(): boolean {
    return this.first.isFree && this.first.next === undefined
  }
}

/** A part of a segment, in use or free. */
export class Block {
  readonly owner: BlockOwner
  /** The list to which the block returns. Work of its stream can reuse the block immediately. */
  readonly freeBlocks: FreeBlocks
  readonly segment: Segment
  readonly address: bigint
  readonly halves: U64Halves
  byteLength: number
  isFree = true
  /** Neighbors in the segment. */
  previous: Block | undefined
  next: Block | undefined
  /** Other streams whose work uses the block. */
  users: Set<Stream> | undefined

  constructor(owner: BlockOwner, freeBlocks: FreeBlocks, segment: Segment, address: bigint, byteLength: number) {
    this.owner = owner
    this.freeBlocks = freeBlocks
    this.segment = segment
    this.address = address
    this.halves = halvesOf(address)
    this.byteLength = byteLength
  }

  get context(): Context {
    return this.owner.context
  }

  /** Returns the block to its pool. With `stream`, the pool waits for that stream's current work too. */
  giveBack(stream?: Stream): void {
    this.owner.giveBack(this, stream)
  }

  /** Shortens this block to `byteLength` bytes. Returns the rest as a new block. */
  split(byteLength: number): Block {
    const { owner, freeBlocks, segment, next } = this
    const rest = new Block(owner, freeBlocks, segment, this.address + BigInt(byteLength), this.byteLength - byteLength)
    rest.previous = this
    rest.next = next
    if (next !== undefined) next.previous = rest
    this.next = rest
    this.byteLength = byteLength
    return rest
  }

  /** Merges the free blocks that follow this block into it. */
  takeInFree(): void {
    while (this.next?.isFree) {
      const { byteLength, next } = this.next
      this.byteLength += byteLength
      this.next = next
      if (next !== undefined) next.previous = this
    }
  }
}
