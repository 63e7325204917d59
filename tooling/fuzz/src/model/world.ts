import { queueDelay, Random } from '@shoal/conformance'
import { Device, type Event, type PinnedBuffer, type Stream } from '@shoal/driver'
import type { Session } from '@shoal/nvshmem'
import * as runtime from '@shoal/runtime'
import { type Clock, Clocks, join, type Queue, type Use } from './clock.js'
import { arrays, type Block, type Expected, firstDifference, type Memory, type ModelType, type Root } from './memory.js'
import { Mismatch } from './operation.js'

/** A stream with its model. */
export interface StreamModel {
  readonly name: string
  readonly stream: Stream
  readonly queue: Queue
  readonly device: number
  disposed: boolean
}

/** An event, and the clock of its stream at the last record. */
export interface EventModel {
  readonly name: string
  readonly event: Event
  readonly device: number
  mark: Clock | undefined
  disposed: boolean
}

/** Page-locked memory. */
export interface PinnedModel {
  readonly name: string
  readonly buffer: PinnedBuffer<ModelType>
  readonly dtype: ModelType
  readonly block: Block
  readonly device: number
  disposed: boolean
}

type ErrorClass = abstract new (...args: never[]) => Error
/** Allowed errors: a call must throw one of them. */
export type Refusals = readonly ErrorClass[]

/** All objects of a sequence, their expected content, and the promises that have not settled. */
export class World {
  readonly clocks = new Clocks()
  readonly devices: readonly Device[]
  readonly runtimeDevices: readonly runtime.Device[]
  readonly streams: StreamModel[] = []
  readonly events: EventModel[] = []
  readonly roots: Root[] = []
  readonly memories: Memory[] = []
  readonly pinned: PinnedModel[] = []
  /** Functions that end further objects at the end of the sequence, the last one first. */
  readonly cleanups: (() => void | Promise<void>)[] = []
  /** State of each part of the model. */
  readonly parts = new Map<object, unknown>()
  readonly outcomes = new Map<string, number>()
  random: Random
  /** Random choices that may differ between PEs. */
  aside: Random
  /** The NVSHMEM session, if this process has one. */
  readonly session: Session | undefined
  /** True if other threads use the devices. */
  readonly sharesDevices: boolean
  /** True if others use the default streams too. */
  readonly sharesStreams: boolean
  #pending: Promise<void>[] = []
  #failure: unknown
  #made = 0

  constructor(seed: number, session: Session | undefined, isShared: boolean) {
    this.random = new Random(seed)
    this.aside = new Random(seed)
    this.session = session
    this.sharesDevices = isShared
    this.sharesStreams = isShared || session !== undefined
    this.devices = Device.all()
    this.runtimeDevices = runtime.Device.all()
    for (const [device, { defaultStream }] of this.devices.entries()) {
      const queue = this.clocks.addQueue('legacy', device)
      this.streams.push({ name: `default${device}`, stream: defaultStream, queue, device, disposed: false })
    }
  }

  name(kind: string): string {
    this.#made += 1
    return `${kind}${this.#made}`
  }

  /** Returns the state of a part of the model. The first call creates it. */
  part<T>(key: () => T): T {
    if (!this.parts.has(key)) this.parts.set(key, key())
    return this.parts.get(key) as T
  }

  chance(probability: number): boolean {
    return this.random.word() / 2 ** 32 < probability
  }

  pick<T>(list: readonly T[]): T | undefined {
    return list.length === 0 ? undefined : list[this.random.integer(0, list.length - 1)]
  }

  /** Picks an element of a list that is not empty. */
  one<T>(list: readonly [T, ...T[]] | readonly T[]): T {
    return list[this.random.integer(0, list.length - 1)] as T
  }

  liveStreams(device?: number): StreamModel[] {
    return this.streams.filter((stream) => !stream.disposed && (device === undefined || stream.device === device))
  }

  liveMemories(dtype?: ModelType, length?: number): Memory[] {
    return this.memories.filter(
      (memory) =>
        !memory.root.disposed &&
        (dtype === undefined || memory.dtype === dtype) &&
        (length === undefined || memory.length === length),
    )
  }

  livePinned(): PinnedModel[] {
    return this.pinned.filter(({ disposed }) => !disposed)
  }

  /** Returns random elements. They are integers, which every type holds exactly. */
  values(dtype: ModelType, length: number): InstanceType<(typeof arrays)[ModelType]> {
    const array = new arrays[dtype](length)
    for (let index = 0; index < length; index += 1) {
      const value = this.random.integer(0, 100)
      array[index] = (dtype === 'i64' ? BigInt(value) : value) as never
    }
    return array
  }

  /** Keeps the stream busy for the given time. */
  async delay({ stream, queue }: StreamModel, milliseconds: number): Promise<void> {
    await queueDelay(stream, milliseconds)
    this.clocks.issue(queue)
  }

  /**
   * Makes the next work of `queue` wait for all work that conflicts with it, in one of the ways that a program has. If
   * `queue` is undefined, the host waits. The result of a race could not be predicted.
   */
  async order(queue: Queue | undefined, uses: readonly { block: Block; write: boolean }[]): Promise<void> {
    for (const { block, write } of uses) {
      const others = write ? [block.lastWrite, ...block.reads] : [block.lastWrite]
      for (const other of others) {
        if (other === undefined || this.clocks.isBefore(other, queue)) continue
        await this.#wait(other, queue)
      }
    }
  }

  async #wait(use: Use, queue: Queue | undefined): Promise<void> {
    const before = this.streams.find((stream) => stream.queue === use.queue)
    const after = this.streams.find((stream) => stream.queue === queue && !stream.disposed)
    if (before === undefined || before.disposed) {
      if (use.queue.kind === 'thread') {
        await this.session?.quiet()
        this.clocks.seen(use.queue)
        return
      }
      await this.synchronizeDevice(use.queue.device)
      return
    }
    const way = this.aside.integer(after === undefined ? 1 : 0, 2)
    if (way === 0 && after !== undefined) {
      after.stream.waitEvent(before.stream.record())
      join(after.queue.clock, before.queue.clock)
      return
    }
    if (way === 1) await before.stream.synchronize()
    else before.stream.synchronizeSync()
    this.clocks.seen(before.queue)
  }

  async synchronizeDevice(device: number): Promise<void> {
    const queues = this.clocks.queues.filter((queue) => queue.device === device && queue.kind !== 'thread')
    const clock: Clock = []
    for (const queue of queues) join(clock, queue.clock)
    const object = this.devices[device] as Device
    if (this.aside.integer(0, 1) === 0) await object.synchronize()
    else object.synchronizeSync()
    join(this.clocks.host, clock)
  }

  /** Records that the next work of a queue uses memory. */
  use(queue: Queue, uses: readonly { block: Block; write: boolean }[]): void {
    const use = this.clocks.issue(queue)
    for (const { block, write } of uses) {
      if (write) {
        block.lastWrite = use
        block.reads = []
      } else {
        block.reads.push(use)
        if (block.reads.length > 32)
          block.reads.splice(
            0,
            block.reads.findIndex((read) => !this.clocks.isBefore(read, undefined)),
          )
      }
    }
  }

  /** Checks a promise that settles later, while the sequence continues. */
  later(what: string, promise: Promise<unknown>, check: (value: never) => void): void {
    const checked = promise.then(
      (value) => check(value as never),
      (error: unknown) => {
        throw new Mismatch(`${what} rejected: ${describe(error)}`, { cause: error })
      },
    )
    const noted = checked.catch((error: unknown) => {
      this.#failure ??= error
    })
    this.#pending.push(noted)
  }

  /** Waits for the pending promises if there are many, or if `all` is true. Throws the first failure. */
  async settle(all = false): Promise<void> {
    if (all || this.#pending.length > 16) {
      const settling = this.#pending
      this.#pending = []
      await Promise.all(settling)
    }
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Throws if the content differs from the model. */
  compare(what: string, found: Uint8Array, expected: Expected): void {
    const difference = firstDifference(found, expected)
    if (difference !== undefined) throw new Mismatch(`${what}: ${difference}`)
  }

  equal(what: string, found: unknown, expected: unknown): void {
    if (!Object.is(found, expected)) throw new Mismatch(`${what} is ${String(found)} and should be ${String(expected)}`)
  }

  /** Checks that the call throws one of these errors. */
  refused(what: string, call: () => unknown, refusals: Refusals): void {
    try {
      call()
    } catch (error) {
      this.#requireRefusal(what, error, refusals)
      return
    }
    throw new Mismatch(`${what} was not refused with ${names(refusals)}`)
  }

  /** Checks that the promise rejects with one of these errors. */
  async rejects(what: string, promise: Promise<unknown>, refusals: Refusals): Promise<void> {
    try {
      await promise
    } catch (error) {
      this.#requireRefusal(what, error, refusals)
      return
    }
    throw new Mismatch(`${what} did not reject with ${names(refusals)}`)
  }

  /** Checks that the promise resolves, or rejects with one of these errors. Returns true if it resolved. */
  async either(what: string, promise: Promise<unknown>, refusals: Refusals): Promise<boolean> {
    try {
      await promise
      return true
    } catch (error) {
      this.#requireRefusal(what, error, refusals)
      return false
    }
  }

  #requireRefusal(what: string, error: unknown, refusals: Refusals): void {
    if (refusals.some((kind) => error instanceof kind)) return
    throw new Mismatch(`${what} threw ${describe(error)} where ${names(refusals)} was expected`, { cause: error })
  }

  /** Disposes of everything, in a random order. */
  async end(): Promise<void> {
    await this.settle(true)
    for (const cleanup of this.cleanups.reverse()) await cleanup()
    const roots = this.random.shuffled(this.roots.filter(({ disposed }) => !disposed))
    for (const device of this.devices.keys()) await this.synchronizeDevice(device)
    for (const root of roots) {
      await root.dispose()
      root.disposed = true
    }
    for (const owner of [...this.pinned, ...this.events]) {
      if ('event' in owner) owner.event.dispose()
      else owner.buffer.dispose()
      owner.disposed = true
    }
    for (const { stream, queue } of this.streams) if (queue.kind !== 'legacy') stream.dispose()
    await this.settle(true)
  }
}

function names(refusals: Refusals): string {
  return refusals.map(({ name }) => name).join(' or ')
}

export function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
