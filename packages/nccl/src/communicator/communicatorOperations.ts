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

/** What a communicator does for the data of its rank: the operations of `Communicator`. */
export abstract class CommunicatorOperations extends PublicObject {
  /**
   * @internal The communicator, for an operation that is about to use it. @throws DisposedError when it takes none any
   * more.
   */
  protected abstract _use(operation: string): LiveCommunicator

  /**
   * Combines the elements of `send` over all ranks and leaves the result in `recv` on every rank (`ncclAllReduce`).
   * The same buffer twice works in place.
   *
   * @example
   * ```ts
   * communicator.allReduce(gradients, gradients, { op: 'avg', stream })
   * await communicator.synchronize(stream)
   * ```
   *
   * @throws TypeError, RangeError, DisposedError for wrong arguments, before NCCL is called; StatusError when it
   * refuses. CommunicatorStateError when the communicator is suspended or revoked, or when NCCL would wait for another
   * rank of this thread to connect it (see `group`). The same holds for the other operations.
   */
  allReduce(send: MemoryLike, recv: MemoryLike, options: ReductionOptions = {}): void {
    queueCollective(this._use('allReduce'), allReduceKind, send, recv, options)
  }

  /** Checks an {@link allReduce} once, to be queued again and again by `launch()`. @throws as {@link allReduce} */
  prepareAllReduce(send: MemoryLike, recv: MemoryLike, options: ReductionOptions = {}): PreparedCollective {
    return this.#prepare(allReduceKind, 'prepareAllReduce', send, recv, options)
  }

  /** Checks an {@link allGather} once, to be queued again and again by `launch()`. @throws as {@link allGather} */
  prepareAllGather(send: MemoryLike, recv: MemoryLike, options: CollectiveOptions = {}): PreparedCollective {
    return this.#prepare(allGatherKind, 'prepareAllGather', send, recv, options)
  }

  /**
   * Checks a {@link reduceScatter} once, to be queued again and again by `launch()`. @throws as {@link reduceScatter}
   */
  prepareReduceScatter(send: MemoryLike, recv: MemoryLike, options: ReductionOptions = {}): PreparedCollective {
    return this.#prepare(reduceScatterKind, 'prepareReduceScatter', send, recv, options)
  }

  /** Checks an {@link allToAll} once, to be queued again and again by `launch()`. @throws as {@link allToAll} */
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
   * Copies `send` of rank `root` into `recv` of every rank (`ncclBroadcast`). `send` is looked at on the root only and
   * may be null elsewhere; the same buffer twice works in place.
   */
  broadcast(send: MemoryLike | null, recv: MemoryLike, options: CollectiveOptions & RootOptions): void {
    broadcast(this._use('broadcast'), send, recv, options)
  }

  /**
   * Combines the elements of `send` over all ranks and leaves the result in `recv` of rank `root` (`ncclReduce`).
   * `recv` may be null on the other ranks; the same buffer twice works in place.
   */
  reduce(send: MemoryLike, recv: MemoryLike | null, options: ReductionOptions & RootOptions): void {
    reduce(this._use('reduce'), send, recv, options)
  }

  /**
   * Puts the `send` of all ranks one after the other into `recv` of every rank (`ncclAllGather`). `count` is that of
   * one rank. In place when `send` is this rank's part of `recv`.
   */
  allGather(send: MemoryLike, recv: MemoryLike, options: CollectiveOptions = {}): void {
    queueCollective(this._use('allGather'), allGatherKind, send, recv, options)
  }

  /**
   * Combines the elements of `send` over all ranks and leaves each rank its part of the result in `recv`
   * (`ncclReduceScatter`). `count` is that of one part. In place when `recv` is this rank's part of `send`.
   */
  reduceScatter(send: MemoryLike, recv: MemoryLike, options: ReductionOptions = {}): void {
    queueCollective(this._use('reduceScatter'), reduceScatterKind, send, recv, options)
  }

  /**
   * Sends part j of `send` to rank j and puts the part that rank i sent here at place i of `recv` (`ncclAlltoAll`, NCCL
   * 2.28). `count` is that of one part: both buffers hold one for each rank. Not in place.
   */
  allToAll(send: MemoryLike, recv: MemoryLike, options: CollectiveOptions = {}): void {
    queueCollective(this._use('allToAll'), allToAllKind, send, recv, options)
  }

  /**
   * Puts the `send` of all ranks one after the other into `recv` of rank `root` (`ncclGather`, NCCL 2.28). `recv` is
   * looked at on the root only and may be null elsewhere. `count` is that of one rank. In place when the root's `send`
   * is its own part of `recv`.
   */
  gather(send: MemoryLike, recv: MemoryLike | null, options: CollectiveOptions & RootOptions): void {
    gather(this._use('gather'), send, recv, options)
  }

  /**
   * Sends part j of the root's `send` to rank j, into its `recv` (`ncclScatter`, NCCL 2.28). `send` is looked at on the
   * root only and may be null elsewhere. `count` is that of one part. In place when the root's `recv` is its own part
   * of `send`.
   */
  scatter(send: MemoryLike | null, recv: MemoryLike, options: CollectiveOptions & RootOptions): void {
    scatter(this._use('scatter'), send, recv, options)
  }

  /**
   * Sends `memory` to rank `peer`, which receives the same number of elements of the same type from here with `recv`
   * (`ncclSend`, NCCL 2.7). Without a group it ends when the other side has received; sends and receives that depend on
   * each other, those of a rank to itself and those between two ranks of one thread go into one `group`.
   *
   * @throws as `allReduce`.
   */
  send(memory: MemoryLike, options: CollectiveOptions & PeerOptions): void {
    send(this._use('send'), memory, options)
  }

  /** Receives into `memory` what rank `peer` sends here with `send` (`ncclRecv`, NCCL 2.7). */
  recv(memory: MemoryLike, options: CollectiveOptions & PeerOptions): void {
    recv(this._use('recv'), memory, options)
  }

  /**
   * Makes a reduction that multiplies this rank's elements by a scalar before they are added
   * (`ncclRedOpCreatePreMulSum`, NCCL 2.11): an `op` for `allReduce`, `reduce` and `reduceScatter` of this
   * communicator. A number is read now; memory of this communicator's device is read by each operation while it runs,
   * so it must keep its place and may change its value between operations.
   *
   * @example
   * ```ts
   * using weighted = communicator.createPreMulSum(0.25, { dtype: 'f32' })
   * communicator.allReduce(gradients, gradients, { op: weighted, stream })
   * ```
   *
   * @throws TypeError, RangeError for a scalar that is no value of the dtype; StatusError when NCCL refuses.
   */
  createPreMulSum(scalar: number | bigint | MemoryLike, options: PreMulSumOptions = {}): PreMulSum {
    return createPreMulSum(this._use('createPreMulSum'), scalar, options)
  }

  /**
   * Allocates memory of NCCL on this communicator's device: `NcclMemory.allocate(communicator.device, size)`.
   *
   * @param size bytes, or elements of a dtype.
   */
  async allocate(size: MemorySize): Promise<NcclMemory> {
    return NcclMemory.allocate(this._use('allocate').deviceOrdinal, size)
  }

  /**
   * Lets NCCL use memory without a copy of its own (`ncclCommRegister`, NCCL 2.19); whether an operation then does
   * depends on its kind and on the machine. Memory that is disposed of before is given back when the registration ends.
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
   * Opens memory to all ranks of the communicator, which all call this, with the same number of bytes
   * (`ncclCommWindowRegister`, NCCL 2.27, off the JavaScript thread). The memory is `NcclMemory`, or mapped like it,
   * and starts at a multiple of 4096 bytes; other memory takes `symmetric: false`. Settles when all ranks have come;
   * until then the communicator takes no other call. When the signal fires or the time is up the communicator is
   * aborted.
   *
   * @example
   * ```ts
   * const memory = await communicator.allocate({ dtype: 'f32', length: 1024 })
   * await using window = await communicator.registerWindow(memory)
   * ```
   *
   * @throws (rejects) TypeError, RangeError for memory that cannot be a window; FeatureNotSupportedError where the
   * devices have no such memory; StatusError when NCCL refuses.
   */
  async registerWindow(memory: MemoryLike, options: WindowOptions = {}): Promise<Window> {
    return registerWindow(this._use('registerWindow'), memory, options)
  }

  /**
   * Writes `source` into the window of rank `peer`, which does nothing for it, and then signals it (`ncclPutSignal`,
   * NCCL 2.29). The peer learns of it with `waitSignal`. `source` lies in a symmetric window of this communicator.
   *
   * @throws RangeError when the data would reach beyond the window; TypeError for a source outside of windows;
   * StatusError when NCCL refuses, as where the driver is older than CUDA 12.5.
   */
  putSignal(source: MemoryLike, options: PutSignalOptions): void {
    putSignal(this._use('putSignal'), source, options)
  }

  /**
   * Signals rank `peer` without data, after what was put there before on the same context (`ncclSignal`, NCCL 2.29).
   * Some window of the communicator must have been registered before.
   */
  signal(options: SignalOptions): void {
    signal(this._use('signal'), options)
  }

  /**
   * Has the stream wait for signals of peers, and for what they have put before them (`ncclWaitSignal`, NCCL 2.29).
   * Each signal is waited for once: a second call waits for further ones.
   */
  waitSignal(signals: Iterable<AwaitedSignal> | AwaitedSignal, options: WaitSignalOptions): void {
    waitSignal(this._use('waitSignal'), signals, options)
  }

  /**
   * A team of ranks, for the device API (`ncclTeamWorld`, `ncclTeamLsa`, `ncclTeamRail`, NCCL 2.28).
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
   * Makes what kernels need to communicate by themselves (`ncclDevCommCreate`, NCCL 2.28, off the JavaScript thread).
   * All ranks call it, and ask for the same. Settles when all have come; until then the communicator takes no other
   * call.
   *
   * @example
   * ```ts
   * await using forKernels = await communicator.createDeviceCommunicator({ lsaBarrierCount: 16 })
   * using argument = DeviceBuffer.from(device, forKernels.bytes()) // ncclDevComm
   * ```
   *
   * @throws (rejects) TypeError, RangeError for wrong options; VersionTooOldError for one that the NCCL in use does not
   * know; StatusError when NCCL refuses, as where devices do not reach each other's memory.
   */
  async createDeviceCommunicator<R extends string = never, T extends string = never>(
    options: DeviceCommunicatorOptions<R, T> = {},
  ): Promise<DeviceCommunicator<R, T>> {
    return createDeviceCommunicator(this._use('createDeviceCommunicator'), options)
  }
}
