/**
 * What the model knows of NVSHMEM. All PEs go through the same sequence, each in its own process, and each knows what
 * the memory of all of them should hold; what one PE alone does, the others note.
 */
import { DeviceBuffer } from '@shoal/driver'
import type { Session, SymmetricBuffer, Team } from '@shoal/nvshmem'
import type { Queue } from './clock.js'
import { Block, type Expected, type Memory, type ModelType } from './memory.js'
import { Mismatch } from './operation.js'
import { addRoot } from './operations/making.js'
import type { StreamModel, World } from './world.js'

export interface Symmetric {
  readonly name: string
  readonly buffer: SymmetricBuffer<ModelType>
  readonly dtype: ModelType
  readonly length: number
  /** What the memory of each PE should hold. */
  readonly blocks: readonly Block[]
  /** The same memory for CUDA: only where there is one PE, since no other one can collide with it. */
  readonly memory: Memory | undefined
}

export interface TeamModel {
  readonly name: string
  /** Undefined where this PE is not in it. */
  readonly team: Team | undefined
  /** Its PEs, by their number in the world. */
  readonly members: readonly number[]
  disposed: boolean
}

/** Memory that a call uses: whose, by which PE. */
export interface Access {
  readonly block: Block
  readonly caller: number
  readonly write: boolean
}

export class Shmem {
  readonly session: Session
  readonly pe: number
  readonly peCount: number
  readonly queue: Queue
  readonly symmetric: Symmetric[] = []
  readonly teams: TeamModel[]
  readonly #world: World
  /** What PEs have done with memory since they all last met. */
  #accesses: Access[] = []

  constructor(world: World) {
    if (world.session === undefined) throw new Mismatch('there is no session')
    this.#world = world
    this.session = world.session
    this.pe = this.session.pe
    this.peCount = this.session.peCount
    this.queue = world.clocks.addQueue('thread', this.session.deviceOrdinal)
    this.teams = [{ name: 'world', team: this.session.world, members: this.all, disposed: false }]
  }

  get all(): readonly number[] {
    return [...Array(this.peCount).keys()]
  }

  live(dtype?: ModelType, length?: number): Symmetric[] {
    return this.symmetric.filter(
      (one) =>
        !one.buffer.disposed &&
        (dtype === undefined || one.dtype === dtype) &&
        (length === undefined || one.length === length),
    )
  }

  liveTeams(): TeamModel[] {
    return this.teams.filter(({ disposed }) => !disposed)
  }

  add(buffer: SymmetricBuffer<ModelType>): Symmetric {
    const { dtype, length } = buffer
    const blocks = this.all.map(() => new Block(buffer.byteLength))
    const world = this.#world
    let memory: Memory | undefined
    if (this.peCount === 1) {
      memory = addRoot(world, 'symmetricMemory', {
        buffer: DeviceBuffer.view(
          world.devices[buffer.deviceOrdinal] as never,
          buffer,
          dtype,
        ) as DeviceBuffer<ModelType>,
        block: blocks[0] as Block,
        dtype,
        device: buffer.deviceOrdinal,
        object: buffer,
        async dispose() {
          // NVSHMEM's free knows nothing of streams.
          await world.order(undefined, [{ block: blocks[0] as Block, write: true }])
          await buffer.dispose()
        },
      })
    }
    const symmetric: Symmetric = {
      name: memory?.name ?? world.name('symmetric'),
      buffer,
      dtype,
      length,
      blocks,
      memory,
    }
    this.symmetric.push(symmetric)
    if (memory === undefined) world.cleanups.push(() => buffer.dispose())
    return symmetric
  }

  /** Sees to it that the next call collides with nothing: neither with streams of this process nor with other PEs. */
  async prepare(accesses: readonly Access[], local: readonly { block: Block; write: boolean }[] = []): Promise<void> {
    const own = this.peCount === 1 ? [...accesses, ...local] : local
    await this.#world.order(this.queue, own)
    const collides = accesses.some((access) =>
      this.#accesses.some((other) => other.block === access.block && (other.write || access.write) && this.peCount > 1),
    )
    if (collides) this.meet()
    this.#accesses.push(...accesses)
  }

  /** All PEs meet, in their turn. */
  meet(): void {
    this.#world.later('barrierAll()', this.session.barrierAll(), () => {})
    this.#accesses = []
  }

  /** Notes what the thread of the session does next. */
  use(accesses: readonly Access[], local: readonly { block: Block; write: boolean }[] = []): void {
    this.#world.use(this.queue, this.peCount === 1 ? [...accesses, ...local] : local)
  }

  /** The same for work that the session queues on a stream: the stream has done it when the promise settles. */
  async onStream(
    stream: StreamModel,
    call: () => Promise<unknown>,
    accesses: readonly Access[],
    local: readonly { block: Block; write: boolean }[] = [],
  ): Promise<void> {
    const own = this.peCount === 1 ? [...accesses, ...local] : local
    await this.prepare(accesses, local)
    await this.idle()
    await this.#world.order(stream.queue, own)
    await call()
    this.#world.use(stream.queue, own)
    // Other PEs learn of it by calls of the session, which know nothing of streams.
    if (this.peCount > 1) {
      await stream.stream.synchronize()
      this.#world.clocks.seen(stream.queue)
    }
  }

  /**
   * Makes a call that waits, or at times its twin that blocks: that needs a session with nothing else under way. What
   * is given holds the promise, so that whoever awaits the call does not await its end.
   */
  async call<T = unknown>(object: object, name: string, ...args: unknown[]): Promise<{ readonly ended: Promise<T> }> {
    const methods = object as Readonly<Record<string, (...args: unknown[]) => T | Promise<T>>>
    const blocks = this.#world.aside.integer(0, 3) === 0
    if (!blocks) return { ended: Promise.resolve((methods[name] as () => T).apply(object, args as [])) }
    await this.idle()
    // What it throws is what the promise would have rejected with.
    const ended = new Promise<T>((resolve) => resolve((methods[`${name}Sync`] as () => T).apply(object, args as [])))
    ended.catch(() => undefined)
    return { ended }
  }

  /** Waits until the session has done all its calls. */
  async idle(): Promise<void> {
    await this.session.quiet()
    this.#world.clocks.seen(this.queue)
  }
}

const instances = new WeakMap<World, Shmem>()
export function shmemOf(world: World): Shmem {
  let found = instances.get(world)
  if (found === undefined) {
    found = new Shmem(world)
    instances.set(world, found)
  }
  return found
}

/** What the block of a PE is to hold. */
export const whole = ({ blocks }: Symmetric, pe: number): Expected => {
  const block = blocks[pe] as Block
  return block.expected(0, block.bytes.length)
}

/** Accesses of some PEs to their own memory. */
export function own(symmetric: Symmetric, members: readonly number[], write: boolean): Access[] {
  return members.map((caller) => ({ block: symmetric.blocks[caller] as Block, caller, write }))
}

/** A stream of the session's device. */
export function sessionStream(world: World, shmem: Shmem): StreamModel {
  return world.one(world.liveStreams(shmem.session.deviceOrdinal))
}
