import type { Context } from '../../../core/context/context.js'
import type { Stream } from '../../../core/stream/stream.js'
import { halvesOf, type U64Halves } from '../../../core/u64Halves.js'
import type { FreeBlocks } from './freeBlocks.js'

/** What a pool does with memory that is given back, and what its memory belongs to. */
export interface BlockOwner {
  readonly context: Context
  /** @param stream whose work may still use the block, beside that of its own stream. */
  giveBack(block: Block, stream: Stream | undefined): void
  /** Work of another stream uses the block, too. */
  addUser(block: Block, stream: Stream): void
}

/** Memory that came from the source at once: its blocks lie in it one after the other, without gaps. */
export class Segment {
  readonly address: bigint
  readonly byteLength: number
  /** Whether it is for small blocks. */
  readonly isSmall: boolean
  readonly first: Block

  constructor(owner: BlockOwner, freeBlocks: FreeBlocks, address: bigint, byteLength: number, isSmall: boolean) {
    this.address = address
    this.byteLength = byteLength
    this.isSmall = isSmall
    this.first = new Block(owner, freeBlocks, this, address, byteLength)
  }

  /** Whether nobody has any of it. */
  get isFree(): boolean {
    return this.first.isFree && this.first.next === undefined
  }
}

/** A piece of a segment, in use or free. */
export class Block {
  readonly owner: BlockOwner
  /** Where it is while it is free: with what else the work of its stream may use at once. */
  readonly freeBlocks: FreeBlocks
  readonly segment: Segment
  readonly address: bigint
  readonly halves: U64Halves
  byteLength: number
  isFree = true
  /** Its neighbours in the segment. */
  previous: Block | undefined
  next: Block | undefined
  /** Other streams whose work uses it. */
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

  /** Gives it back to its pool, when `stream` gets there too. */
  giveBack(stream?: Stream): void {
    this.owner.giveBack(this, stream)
  }

  /** Leaves `byteLength` bytes in this block and gives the rest as one of its own. */
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

  /** Takes in the free blocks behind it. */
  takeInFree(): void {
    while (this.next?.isFree) {
      const { byteLength, next } = this.next
      this.byteLength += byteLength
      this.next = next
      if (next !== undefined) next.previous = this
    }
  }
}
