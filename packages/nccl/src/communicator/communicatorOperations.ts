import type { MemoryLike } from '@shoal/types'
import { PublicObject } from '@shoal/types'
import {
  createDeviceCommunicator,
  type DeviceCommunicator,
  type DeviceCommunicatorOptions,
} from '../deviceApi/deviceCommunicator.js'
import { type Team, type TeamName, team } from '../deviceApi/team.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import { type MemorySize, NcclMemory } from '../memory/ncclMemory.js'
import { type Registration, register } from '../memory/registration.js'
import {
  type AwaitedSignal,
  type PutSignalOptions,
  putSignal,
  type SignalOptions,
  signal,
  type WaitSignalOptions,
  waitSignal,
} from '../oneSided/oneSided.js'
import { registerWindow, type Window, type WindowOptions } from '../oneSided/window.js'
import {
  allGatherKind,
  allReduceKind,
  allToAllKind,
  type Kind,
  queueCollective,
  reduceScatterKind,
} from '../operations/collectives.js'
import type { CollectiveOptions, ReductionOptions, RootOptions } from '../operations/options.js'
import { type PeerOptions, recv, send } from '../operations/pointToPoint.js'
import { PreparedCollective } from '../operations/prepared.js'
import { createPreMulSum, type PreMulSum, type PreMulSumOptions } from '../operations/reductionOps.js'
import { broadcast, gather, reduce, scatter } from '../operations/rooted.js'

/** The data operations of a `Communicator`. */
export abstract class CommunicatorOperations extends PublicObject {
  /**
   * @internal Returns the communicator for an operation. @throws DisposedError when it is gone; CommunicatorStateError
   */
  protected abstract _use(operation: string): LiveCommunicator

  /**
   * Reduces `send` over all ranks into `recv` on every rank (`ncclAllReduce`). Passing the same buffer twice works in
   * place.
   *
   * @example
   * ```ts
   * communicator.allReduce(gradients, gradients, { op: 'avg', stream })
   * await communicator.synchronize(stream)
   * ```
   *
   * @throws TypeError, RangeError, DisposedError for wrong arguments, before NCCL is called; StatusError when NCCL
   * returns an error. CommunicatorStateError when the communicator is suspended or revoked, or when NCCL would wait for
   * another rank of this thread to connect it (see `group`). The same holds for the other operations.
   */
  allReduce(send: MemoryLike, recv: MemoryLike, options: ReductionOptions = {}): void {
    queueCollective(this._use('allReduce'), allReduceKind, send, recv, options)
  }

  /** Checks an {@link allReduce} once, for repeated `launch()` calls. @throws as {@link allReduce} */
  prepareAllReduce(send: MemoryLike, recv: MemoryLike, options: ReductionOptions = {}): PreparedCollective {
    return this.#prepare(allReduceKind, 'prepareAllReduce', send, recv, options)
  }

  /** Checks an {@link allGather} once, for repeated `launch()` calls. @throws as {@link allGather} */
  prepareAllGather(send: MemoryLike, recv: MemoryLike, options: CollectiveOptions = {}): PreparedCollective {
    return this.#prepare(allGatherKind, 'prepareAllGather', send, recv, options)
  }

  /** Checks a {@link reduceScatter} once, for repeated `launch()` calls. @throws as {@link reduceScatter} */
  prepareReduceScatter(send: MemoryLike, recv: MemoryLike, options: ReductionOptions = {}): PreparedCollective {
    return this.#prepare(reduceScatterKind, 'prepareReduceScatter', send, recv, options)
  }

  /** Checks an {@link allToAll} once, for repeated `launch()` calls. @throws as {@link allToAll} */
  prepareAllToAll(send: MemoryLike, recv: MemoryLike, options: CollectiveOptions = {}): PreparedCollective {
    return this.#prepare(allToAllKind, 'prepareAllToAll', send, recv, options)
  }

  #prepare(
    kind: Kind,
    operation: string,
    send: MemoryLike,
    recv: MemoryLike,
    options: ReductionOptions,
  ): PreparedCollective {
    const named = { ...kind, api: `Communicator.${operation}` }
    return PreparedCollective._create(() => this._use(operation), named, send, recv, options)
  }

  /**
   * Copies `send` of rank `root` to `recv` of every rank (`ncclBroadcast`). Only the root reads `send`; it may be null
   * on other ranks. Passing the same buffer twice works in place.
   */
  broadcast(send: MemoryLike | null, recv: MemoryLike, options: CollectiveOptions & RootOptions): void {
    broadcast(this._use('broadcast'), send, recv, options)
  }

  /**
   * Reduces `send` over all ranks into `recv` of rank `root` (`ncclReduce`). `recv` may be null on other ranks. Passing
   * the same buffer twice works in place.
   */
  reduce(send: MemoryLike, recv: MemoryLike | null, options: ReductionOptions & RootOptions): void {
    reduce(this._use('reduce'), send, recv, options)
  }

  /**
   * Concatenates `send` of all ranks in `recv` of every rank (`ncclAllGather`). `count` is per rank. Works in place if
   * `send` is this rank's part of `recv`.
   */
  allGather(send: MemoryLike, recv: MemoryLike, options: CollectiveOptions = {}): void {
    queueCollective(this._use('allGather'), allGatherKind, send, recv, options)
  }

  /**
   * Reduces `send` over all ranks and writes one part of the result to each rank's `recv` (`ncclReduceScatter`).
   * `count` is per part. Works in place if `recv` is this rank's part of `send`.
   */
  reduceScatter(send: MemoryLike, recv: MemoryLike, options: ReductionOptions = {}): void {
    queueCollective(this._use('reduceScatter'), reduceScatterKind, send, recv, options)
  }

  /**
   * Sends part j of `send` to rank j, and receives the part of rank i in part i of `recv` (`ncclAlltoAll`, NCCL 2.28).
   * `count` is per part, and both buffers have one part per rank. Does not work in place.
   */
  allToAll(send: MemoryLike, recv: MemoryLike, options: CollectiveOptions = {}): void {
    queueCollective(this._use('allToAll'), allToAllKind, send, recv, options)
  }

  /**
   * Concatenates `send` of all ranks in `recv` of rank `root` (`ncclGather`, NCCL 2.28). Only the root writes `recv`;
   * it may be null on other ranks. `count` is per rank. Works in place if the root's `send` is its own part of `recv`.
   */
  gather(send: MemoryLike, recv: MemoryLike | null, options: CollectiveOptions & RootOptions): void {
    gather(this._use('gather'), send, recv, options)
  }

  /**
   * Sends part j of the root's `send` to `recv` of rank j (`ncclScatter`, NCCL 2.28). Only the root reads `send`; it
   * may be null on other ranks. `count` is per part. Works in place if the root's `recv` is its own part of `send`.
   */
  scatter(send: MemoryLike | null, recv: MemoryLike, options: CollectiveOptions & RootOptions): void {
    scatter(this._use('scatter'), send, recv, options)
  }

  /**
   * Sends `memory` to rank `peer`, which receives it with `recv` of the same count and type (`ncclSend`, NCCL 2.7).
   * Without a group it completes when the other side has received. Put sends and receives that depend on each other
   * into one `group`, such as sends of a rank to itself, and sends between two ranks of one thread.
   *
   * @example
   * ```ts
   * if (communicator.rank === 0) communicator.send(x, { peer: 1, stream })
   * else communicator.recv(x, { peer: 0, stream })
   * ```
   *
   * @throws as `allReduce`.
   */
  send(memory: MemoryLike, options: CollectiveOptions & PeerOptions): void {
    send(this._use('send'), memory, options)
  }

  /** Receives data that rank `peer` sends with `send` (`ncclRecv`, NCCL 2.7). */
  recv(memory: MemoryLike, options: CollectiveOptions & PeerOptions): void {
    recv(this._use('recv'), memory, options)
  }

  /**
   * Creates a reduction that multiplies this rank's elements by a scalar before the sum (`ncclRedOpCreatePreMulSum`,
   * NCCL 2.11).
   *
   * Pass the result as `op` to `allReduce`, `reduce` and `reduceScatter` of this communicator. If the scalar is memory
   * of this communicator's device, each operation reads the memory when it runs. The memory must keep its address; its
   * value may change between operations.
   *
   * @example
   * ```ts
   * using weighted = communicator.createPreMulSum(0.25, { dtype: 'f32' })
   * communicator.allReduce(gradients, gradients, { op: weighted, stream })
   * ```
   *
   * @throws TypeError, RangeError for a scalar that the dtype cannot hold; StatusError when NCCL refuses.
   */
  createPreMulSum(scalar: number | bigint | MemoryLike, options: PreMulSumOptions = {}): PreMulSum {
    return createPreMulSum(this._use('createPreMulSum'), scalar, options)
  }

  /**
   * Allocates NCCL memory on this communicator's device: `NcclMemory.allocate(communicator.device, size)`.
   *
   * @param size bytes, or elements of a dtype.
   */
  async allocate(size: MemorySize): Promise<NcclMemory> {
    return NcclMemory.allocate(this._use('allocate').deviceOrdinal, size)
  }

  /**
   * Registers memory so that NCCL can use it without internal copies (`ncclCommRegister`, NCCL 2.19). The effect
   * depends on the operation and the machine. If you dispose of the memory earlier, it is freed when the registration
   * ends.
   *
   * @example
   * ```ts
   * using registration = communicator.register(buffer)
   * ```
   *
   * @throws TypeError for memory of another device; StatusError when NCCL refuses.
   */
  register(memory: MemoryLike): Registration {
    return register(this._use('register'), memory)
  }

  /**
   * Opens memory to all ranks of the communicator (`ncclCommWindowRegister`, NCCL 2.27, off the JavaScript thread).
   *
   * All ranks call it with the same number of bytes. The memory is `NcclMemory` or similarly mapped memory, and starts
   * at a multiple of 4096 bytes; other memory requires `symmetric: false`. Settles when all ranks have called it. Until
   * then the communicator accepts no other call. A signal or a time limit aborts the communicator.
   *
   * @example
   * ```ts
   * const memory = await communicator.allocate({ dtype: 'f32', length: 1024 })
   * await using window = await communicator.registerWindow(memory)
   * ```
   *
   * @throws (rejects) TypeError, RangeError for memory that cannot be a window; FeatureNotSupportedError when the
   * devices do not support such memory; StatusError when NCCL refuses.
   */
  async registerWindow(memory: MemoryLike, options: WindowOptions = {}): Promise<Window> {
    return registerWindow(this._use('registerWindow'), memory, options)
  }

  /**
   * Writes `source` to the window of rank `peer` and then signals the rank (`ncclPutSignal`, NCCL 2.29). The peer makes
   * no call for the write; to wait for it, the peer calls `waitSignal`. `source` must be in a symmetric window of this
   * communicator.
   *
   * @throws RangeError when the data exceeds the window; TypeError for a source outside of windows; StatusError when
   * NCCL refuses, such as for a driver older than CUDA 12.5.
   */
  putSignal(source: MemoryLike, options: PutSignalOptions): void {
    putSignal(this._use('putSignal'), source, options)
  }

  /**
   * Signals rank `peer` after earlier puts in the same context, without data (`ncclSignal`, NCCL 2.29). Requires that a
   * window of the communicator was registered before.
   */
  signal(options: SignalOptions): void {
    signal(this._use('signal'), options)
  }

  /**
   * Makes the stream wait for signals of peers and for their earlier puts (`ncclWaitSignal`, NCCL 2.29). A wait
   * consumes its signals: a second call waits for further signals.
   */
  waitSignal(signals: Iterable<AwaitedSignal> | AwaitedSignal, options: WaitSignalOptions): void {
    waitSignal(this._use('waitSignal'), signals, options)
  }

  /**
   * Returns a team of ranks for the device API (`ncclTeamWorld`, `ncclTeamLsa`, `ncclTeamRail`, NCCL 2.28).
   *
   * @example
   * ```ts
   * const { rank, size } = communicator.team('lsa')
   * ```
   *
   * @throws TypeError for another name; VersionTooOldError below NCCL 2.28.
   */
  team(name: TeamName): Team {
    return team(this._use('team'), name)
  }

  /**
   * Creates the resources with which kernels communicate themselves (`ncclDevCommCreate`, NCCL 2.28, off the JavaScript
   * thread). All ranks call it with the same requirements. Settles when all ranks have called it. Until then the
   * communicator accepts no other call.
   *
   * @example
   * ```ts
   * await using forKernels = await communicator.createDeviceCommunicator({ lsaBarrierCount: 16 })
   * using argument = DeviceBuffer.from(device, forKernels.bytes()) // ncclDevComm
   * ```
   *
   * @throws (rejects) TypeError, RangeError for wrong options; VersionTooOldError for an option unknown to the loaded
   * NCCL; StatusError when NCCL refuses, such as for devices that cannot access each other's memory.
   */
  async createDeviceCommunicator<R extends string = never, T extends string = never>(
    options: DeviceCommunicatorOptions<R, T> = {},
  ): Promise<DeviceCommunicator<R, T>> {
    return createDeviceCommunicator(this._use('createDeviceCommunicator'), options)
  }
}
