import type { CUdeviceptr, CUevent } from '@shoal/cuda-sys/driver'
import { BusyError, ShoalError, StatusError, settledNow } from '@shoal/types'
import { afterCapture, wouldLoseCapture } from '../../../core/context/capturing.js'
import type { Context } from '../../../core/context/context.js'
import { finishReleasesSync } from '../../../core/context/releases.js'
import { isGone, Status } from '../../../core/errors.js'
import { processIsEnding } from '../../../core/lifetime.js'
import { scratch } from '../../../core/native.js'
import { awaitReleases, withBlockingReleases } from '../../../core/releasing.js'
import type { Stream } from '../../../core/stream/stream.js'
import { type Block, type BlockOwner, Segment } from './block.js'
import { blockSize, FreeBlocks, isSmall, segmentSizes } from './freeBlocks.js'

/** Where a pool has its memory from. */
export interface MemorySource {
  /**
   * The address of `byteLength` bytes that the device can use, aligned to 512. Throws where there is not enough memory.
   */
  allocate(byteLength: number): bigint
  /** Takes them back. All work of the device that was queued before has ended. */
  free(address: bigint, byteLength: number): void
}

/** Given back, and still used by other streams. */
interface Waiting {
  readonly block: Block
  readonly events: CUevent[]
  /** How often the work of the whole context is still waited for. */
  syncs: number
}

/** The memory of a `CachingPool`, which may be gone before it. */
export class BlockCache implements BlockOwner {
  readonly context: Context
  usedBytes = 0
  mostUsedBytes = 0
  reservedBytes = 0
  mostReservedBytes = 0
  waitingBytes = 0
  allocations = 0
  misses = 0
  retries = 0
  readonly #source: MemorySource | undefined
  readonly #maximumBytes: number
  readonly #all = new Set<FreeBlocks>()
  readonly #ofStream = new WeakMap<Stream, FreeBlocks>()
  readonly #ofId = new Map<bigint, FreeBlocks>()
  #lastStream: Stream | undefined
  #lastFreeBlocks: FreeBlocks | undefined
  #waiting: Waiting[] = []
  #isOver = false
  readonly #leaveContext: () => void

  constructor(context: Context, source: MemorySource | undefined, maximumBytes: number) {
    this.context = context
    this.#source = source
    this.#maximumBytes = maximumBytes
    context._addChild()
    const giveBack = (): boolean => {
      this.retries += 1
      return this.trimSync(0) > 0
    }
    context._whenShort.add(giveBack)
    this.#leaveContext = () => {
      context._whenShort.delete(giveBack)
      context._removeChild()
    }
  }

  /** @throws StatusError when there is not enough memory */
  take(stream: Stream, byteLength: number): Block {
    const freeBlocks = stream === this.#lastStream ? (this.#lastFreeBlocks as FreeBlocks) : this.#freeBlocksOf(stream)
    const size = blockSize(byteLength)
    const block = freeBlocks.takeExact(size) ?? this.#takeOther(freeBlocks, size)
    this.allocations += 1
    this.usedBytes += block.byteLength
    if (this.usedBytes > this.mostUsedBytes) this.mostUsedBytes = this.usedBytes
    return block
  }

  giveBack(block: Block, stream: Stream | undefined): void {
    if (this.context.disposed || processIsEnding()) return
    this.usedBytes -= block.byteLength
    if (stream !== undefined) this.addUser(block, stream)
    try {
      const { users } = block
      if (users === undefined) block.freeBlocks.put(block)
      // An event of a stream that is captured is a part of the graph, and cannot be asked.
      else afterCapture('Memory of a CachingPool', () => this.#keepForUsers(block, users))
    } finally {
      if (this.#isOver) afterCapture('A CachingPool', () => this.#endIfUnused())
    }
  }

  /** Work of another stream uses the block, too. */
  addUser(block: Block, stream: Stream): void {
    if (this.#freeBlocksOf(stream) === block.freeBlocks) return
    block.users ??= new Set()
    block.users.add(stream)
  }

  /** Gives free segments back until at most so much is kept. Blocks until the device has ended its work. */
  trimSync(bytesToKeep: number): number {
    this.#collect(true)
    const segments = this.#takeFreeSegments(bytesToKeep)
    withBlockingReleases(() => this.#free(segments))
    return bytesOf(segments)
  }

  /** The same without blocking the thread; what other streams still use is left. */
  async trim(bytesToKeep: number): Promise<number> {
    this.#collect(false)
    const segments = this.#takeFreeSegments(bytesToKeep)
    if (segments.length === 0) return settledNow(0)
    await awaitReleases(() => this.#free(segments))
    return bytesOf(segments)
  }

  /** Nobody can allocate any more: what is free goes now, and the rest when it is given back. */
  end(): void {
    this.#isOver = true
    if (this.context.disposed || processIsEnding()) this.#leaveContext()
    else afterCapture('A CachingPool', () => this.#endIfUnused())
  }

  /** What the work of a stream may use at once, whichever object the stream comes as. */
  #freeBlocksOf(stream: Stream): FreeBlocks {
    let freeBlocks = this.#ofStream.get(stream)
    if (freeBlocks === undefined || !this.#all.has(freeBlocks)) {
      const id = idOf(stream)
      freeBlocks = id === undefined ? undefined : this.#ofId.get(id)
      freeBlocks ??= new FreeBlocks(stream)
      if (id !== undefined) this.#ofId.set(id, freeBlocks)
      this.#all.add(freeBlocks)
      this.#ofStream.set(stream, freeBlocks)
    }
    freeBlocks.stream = stream
    this.#lastStream = stream
    this.#lastFreeBlocks = freeBlocks
    return freeBlocks
  }

  /** A block where none of exactly that size is free. */
  #takeOther(freeBlocks: FreeBlocks, size: number): Block {
    const isStrict = wouldLoseCapture()
    if (this.#waiting.length > 0 && !isStrict) this.#collect(false)
    const found = freeBlocks.takeExact(size) ?? freeBlocks.takePart(size)
    if (found !== undefined) return found
    if (!isStrict) this.#freeGoneStreams()
    else if (this.#source === undefined) refuseMiss(size)
    const [usual, least] = segmentSizes(size)
    try {
      return freeBlocks.takeFrom(this.#newSegment(freeBlocks, usual, isSmall(size)), size)
    } catch (error) {
      if (usual === least) throw error
      return freeBlocks.takeFrom(this.#newSegment(freeBlocks, least, false), size)
    }
  }

  #newSegment(freeBlocks: FreeBlocks, byteLength: number, isSmall: boolean): Segment {
    const address = this.#allocate(byteLength)
    this.misses += 1
    this.reservedBytes += byteLength
    if (this.reservedBytes > this.mostReservedBytes) this.mostReservedBytes = this.reservedBytes
    return new Segment(this, freeBlocks, address, byteLength, isSmall)
  }

  #allocate(byteLength: number): bigint {
    const { context } = this
    const most = this.#maximumBytes - byteLength
    if (this.reservedBytes > most) {
      this.retries += 1
      this.trimSync(Math.max(0, most))
      if (this.reservedBytes > most) {
        const detail = `the pool may have ${this.#maximumBytes} bytes at most; ${this.usedBytes} of them are in use`
        throw context._error(Status.outOfMemory, 'memAlloc', detail)
      }
    }
    if (this.#source === undefined) {
      const out = scratch()
      context._callWithRoom(byteLength, 'memAlloc', out, byteLength)
      return out.u64[0] as bigint
    }
    try {
      return this.#source.allocate(byteLength)
    } catch (error) {
      if (!context._makeRoom()) throw error
      return this.#source.allocate(byteLength)
    }
  }

  /** What is free of streams that are gone serves no other stream: their work may not have ended. */
  #freeGoneStreams(): void {
    const segments: Segment[] = []
    for (const freeBlocks of this.#all) {
      if (!freeBlocks.stream._isGone) continue
      segments.push(...this.#takeSegmentsOf(freeBlocks))
      if (freeBlocks.segments.size > 0) continue
      this.#all.delete(freeBlocks)
      for (const [id, other] of this.#ofId) if (other === freeBlocks) this.#ofId.delete(id)
    }
    this.#free(segments)
  }

  /** Events tell when the other streams do not use the block any more. */
  #keepForUsers(block: Block, users: Set<Stream>): void {
    const { context } = this
    if (context.disposed) return
    const events: CUevent[] = []
    block.users = undefined
    this.waitingBytes += block.byteLength
    const waiting: Waiting = { block, events, syncs: 0 }
    this.#waiting.push(waiting)
    for (const stream of users) {
      if (stream._isGone) {
        // It cannot be asked, and everything that it was given may still be at work.
        waiting.syncs += 1
        context._releases.add('Memory of a CachingPool', [context._releaseCall('ctxSynchronize')], () => {
          waiting.syncs -= 1
        })
      } else {
        const event = eventFrom(context)
        if (event === undefined) continue
        events.push(event)
        context._release('eventRecord', event, stream._handle)
      }
    }
  }

  /** Puts what no other stream uses any more to what is free. */
  #collect(canBlock: boolean): void {
    const waiting = this.#waiting
    this.#waiting = []
    try {
      for (let next = waiting.at(-1); next !== undefined; next = waiting.at(-1)) {
        // It may throw: then this one waits on, as those before it.
        const isOver = this.#isOverFor(next, canBlock)
        waiting.pop()
        if (isOver) {
          this.waitingBytes -= next.block.byteLength
          next.block.freeBlocks.put(next.block)
        } else this.#waiting.push(next)
      }
    } finally {
      this.#waiting.push(...waiting)
    }
  }

  #isOverFor(waiting: Waiting, canBlock: boolean): boolean {
    const { context } = this
    const { events } = waiting
    if (waiting.syncs > 0 && canBlock) finishReleasesSync()
    if (waiting.syncs > 0) return false
    for (let event = events.at(-1); event !== undefined; event = events.at(-1)) {
      const call = canBlock ? 'eventSynchronize' : 'eventQuery'
      const status = context._status(call, event)
      if (status === Status.notReady) {
        context._cuda.forgetNotReady()
        return false
      }
      if (status !== Status.success && !isGone(status)) throw context._error(status, call)
      events.pop()
      context._events.giveBack(event)
    }
    return true
  }

  #takeFreeSegments(bytesToKeep: number): Segment[] {
    const taken: Segment[] = []
    for (const freeBlocks of this.#all) {
      const excess = this.reservedBytes - bytesToKeep
      if (excess > 0) taken.push(...this.#takeSegmentsOf(freeBlocks, excess))
    }
    return taken
  }

  #takeSegmentsOf(freeBlocks: FreeBlocks, byteLength?: number): Segment[] {
    const segments = freeBlocks.takeFreeSegments(byteLength)
    this.reservedBytes -= bytesOf(segments)
    return segments
  }

  /** Gives segments back when the work of the device has ended. */
  #free(segments: readonly Segment[]): void {
    if (segments.length === 0) return
    const { context } = this
    const what = 'Memory of a CachingPool'
    const source = this.#source
    if (source === undefined) {
      const calls = segments.map(({ address }) => context._releaseCall('memFree', address as CUdeviceptr))
      context._releases.add(what, calls, () => undefined)
      return
    }
    context._releases.add(what, [context._releaseCall('ctxSynchronize')], () => {
      for (const { address, byteLength } of segments) source.free(address, byteLength)
    })
  }

  #endIfUnused(): void {
    // Freeing waits for the work of the whole device, and so for that of other streams.
    for (const { block, events } of this.#waiting.splice(0)) {
      this.waitingBytes -= block.byteLength
      block.freeBlocks.put(block)
      for (const event of events) this.context._events.giveBack(event)
    }
    try {
      this.#free(this.#takeFreeSegments(0))
    } finally {
      if (this.reservedBytes === 0) this.#leaveContext()
    }
  }
}

/** @throws BusyError */
function refuseMiss(byteLength: number): never {
  const reason = `no free block has ${byteLength} bytes, and memory from the device would end the capture`
  throw new BusyError({
    object: 'CachingPool',
    api: 'CachingPool.allocate',
    underWay: 'a capture',
    hint: `${reason}; allocate before it, or in withCaptureMode('relaxed', fn)`,
  })
}

function bytesOf(segments: readonly Segment[]): number {
  return segments.reduce((sum, { byteLength }) => sum + byteLength, 0)
}

/** A number that no other stream of the process has; undefined where the driver does not tell, as before CUDA 12. */
function idOf(stream: Stream): bigint | undefined {
  try {
    return stream.id
  } catch (error) {
    if (error instanceof ShoalError) return undefined
    throw error
  }
}

/** An event; undefined where the context has failed, and no work is left to wait for. */
function eventFrom(context: Context): CUevent | undefined {
  try {
    return context._events.take()
  } catch (error) {
    if (error instanceof StatusError && isGone(error.status)) return undefined
    throw error
  }
}
