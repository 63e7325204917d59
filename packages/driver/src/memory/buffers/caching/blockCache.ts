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

/** The source of a pool's memory. */
export interface MemorySource {
  /** Returns the address of `byteLength` bytes for the device, aligned to 512. Throws when memory is short. */
  allocate(byteLength: number): bigint
  /** Frees the bytes. All earlier work of the device is complete. */
  free(address: bigint, byteLength: number): void
}

/** A block that was returned and that other streams still use. */
interface Waiting {
  readonly block: Block
  readonly events: CUevent[]
  /** Number of pending waits for all work of the context. */
  syncs: number
}

/** The memory of a `CachingPool`. It can outlive the pool. */
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

  /** Takes a block for a stream. @throws StatusError when there is not enough memory */
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
      // An event of a captured stream is part of the graph and cannot be queried.
      else afterCapture('Memory of a CachingPool', () => this.#keepForUsers(block, users))
    } finally {
      if (this.#isOver) afterCapture('A CachingPool', () => this.#endIfUnused())
    }
  }

  /** Registers another stream whose work uses the block. */
  addUser(block: Block, stream: Stream): void {
    if (this.#freeBlocksOf(stream) === block.freeBlocks) return
    block.users ??= new Set()
    block.users.add(stream)
  }

  /** Frees free segments until the pool keeps at most `bytesToKeep` bytes. Blocks until the device's work completes. */
  trimSync(bytesToKeep: number): number {
    this.#collect(true)
    const segments = this.#takeFreeSegments(bytesToKeep)
    withBlockingReleases(() => this.#free(segments))
    return bytesOf(segments)
  }

  /** Like {@link trimSync}, but does not block the thread, and skips blocks that other streams still use. */
  async trim(bytesToKeep: number): Promise<number> {
    this.#collect(false)
    const segments = this.#takeFreeSegments(bytesToKeep)
    if (segments.length === 0) return settledNow(0)
    await awaitReleases(() => this.#free(segments))
    return bytesOf(segments)
  }

  /** Ends allocation. Frees free memory now, and other memory when it is returned. */
  end(): void {
    this.#isOver = true
    if (this.context.disposed || processIsEnding()) this.#leaveContext()
    else afterCapture('A CachingPool', () => this.#endIfUnused())
  }

  /** Returns the free blocks that work of the stream can use immediately. Several objects can have the same stream. */
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

  /** Takes a block when no free block has exactly this size. */
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

  /**
   * Frees the free blocks of destroyed streams. Other streams cannot use them, because the work may not be complete.
   */
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

  /** Keeps a block until events show that other streams no longer use it. */
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
        // A destroyed stream cannot be queried, and all of its earlier work may still run.
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

  /** Frees the blocks that no other stream uses any more. */
  #collect(canBlock: boolean): void {
    const waiting = this.#waiting
    this.#waiting = []
    try {
      for (let next = waiting.at(-1); next !== undefined; next = waiting.at(-1)) {
        // This call may throw. Then this block and those before it keep waiting.
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

  /** Frees segments when the device's work completes. */
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
    // Freeing waits for all work of the device, which includes the other streams.
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

/** Refuses an allocation during a capture. @throws BusyError */
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

/** Returns a stream's unique number in this process; undefined if the driver does not report it, as before CUDA 12. */
function idOf(stream: Stream): bigint | undefined {
  try {
    return stream.id
  } catch (error) {
    if (error instanceof ShoalError) return undefined
    throw error
  }
}

/** Returns an event; undefined if the context has failed, because then no work is left to wait for. */
function eventFrom(context: Context): CUevent | undefined {
  try {
    return context._events.take()
  } catch (error) {
    if (error instanceof StatusError && isGone(error.status)) return undefined
    throw error
  }
}
