/**
 * The model of NVSHMEM. All PEs run the same sequence, each in its own process. Each PE knows the expected memory of
 * all PEs, because it records what the other PEs do.
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
  /** Expected memory of each PE. */
  readonly blocks: readonly Block[]
  /**
   * The same memory for CUDA. It exists only with a single PE, because the work of another PE could conflict with it.
   */
  readonly memory: Memory | undefined
}

export interface TeamModel {
  readonly name: string
  /** Undefined if this PE is not in the team. */
  readonly team: Team | undefined
  /** The PEs of the team, numbered as in the world. */
  readonly members: readonly number[]
  disposed: boolean
}

/** Memory that a call uses, and the PE that makes the call. */
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
  /** Accesses of all PEs since their last barrier. */
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
          // NVSHMEM does not wait for streams when it frees memory.
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

  /** Makes sure that the next call conflicts with no stream of this process and with no other PE. */
  async prepare(accesses: readonly Access[], local: readonly { block: Block; write: boolean }[] = []): Promise<void> {
    const own = this.peCount === 1 ? [...accesses, ...local] : local
    await this.#world.order(this.queue, own)
    const collides = accesses.some((access) =>
      this.#accesses.some((other) => other.block === access.block && (other.write || access.write) && this.peCount > 1),
    )
    if (collides) this.meet()
    this.#accesses.push(...accesses)
  }

  /** Queues a barrier of all PEs. */
  meet(): void {
    this.#world.later('barrierAll()', this.session.barrierAll(), () => {})
    this.#accesses = []
  }

  /** Records the next work of the session's thread. */
  use(accesses: readonly Access[], local: readonly { block: Block; write: boolean }[] = []): void {
    this.#world.use(this.queue, this.peCount === 1 ? [...accesses, ...local] : local)
  }

  /** Records work that the session queues on a stream. */
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
    // Other PEs are ordered by calls of the session, which do not wait for streams.
    if (this.peCount > 1) {
      await stream.stream.synchronize()
      this.#world.clocks.seen(stream.queue)
    }
  }

  /**
   * Makes an asynchronous call, or sometimes its blocking variant, which needs an idle session. The result wraps the
   * promise in an object, so that awaiting this method does not await the end of the call.
   */
  async call<T = unknown>(object: object, name: string, ...args: unknown[]): Promise<{ readonly ended: Promise<T> }> {
    const methods = object as Readonly<Record<string, (...args: unknown[]) => T | Promise<T>>>
    const blocks = this.#world.aside.integer(0, 3) === 0
    if (!blocks) return { ended: Promise.resolve((methods[name] as () => T).apply(object, args as [])) }
    await this.idle()
    // The blocking variant throws the error with which the promise would reject.
    const ended = new Promise<T>((resolve) => resolve((methods[`${name}Sync`] as () => T).apply(object, args as [])))
    ended.catch(() => undefined)
    return { ended }
  }

  /** Waits until the session has finished all its calls. */
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

/** Returns the expected content of the block of a PE. */
export const whole = ({ blocks }: Symmetric, pe: number): Expected => {
  const block = blocks[pe] as Block
  return block.expected(0, block.bytes.length)
}

/** Returns an access of each given PE to its own memory. */
export function own(symmetric: Symmetric, members: readonly number[], write: boolean): Access[] {
  return members.map((caller) => ({ block: symmetric.blocks[caller] as Block, caller, write }))
}

/** Returns a stream of the session's device. */
export function sessionStream(world: World, shmem: Shmem): StreamModel {
  return world.one(world.liveStreams(shmem.session.deviceOrdinal))
}
