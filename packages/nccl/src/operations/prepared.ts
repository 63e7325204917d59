import { isCapturing } from '@shoal/driver/basics'
import { callInContext } from '@shoal/ffi'
import { type RecordedCalls, recordCalls } from '@shoal/ffi/calls'
import { ncclGroupEnd, ncclGroupStart, ncclResult_t } from '@shoal/nccl-sys'
import {
  inspectKey,
  inspectLine,
  loadedFrom,
  type MemoryLike,
  memoryProtocol,
  PublicObject,
  requireInstance,
  requireList,
  requireMade,
  type StreamLike,
  streamProtocol,
} from '@shoal/types'
import { contextError, ncclError } from '../errors.js'
import { group } from '../group/group.js'
import { isCollecting, isGroupOpen } from '../group/groupState.js'
import { beginOperation } from '../group/submit.js'
import type { CheckedCollective } from '../lifetime/checkedCollective.js'
import { keepOnStream } from '../lifetime/keptByCaptures.js'
import type { LiveCommunicator } from '../lifetime/live.js'
import { checkOperands, isLasting, type Kind, queueChecked } from './collectives.js'
import type { ReductionOptions } from './options.js'

/**
 * A collective with checked arguments, to queue repeatedly.
 *
 * Made by `communicator.prepareAllReduce()` and similar methods.
 *
 * @example
 * ```ts
 * const sum = communicator.prepareAllReduce(gradients, gradients, { stream })
 * for (let step = 0; step < 1000; step += 1) sum.launch()
 * ```
 */
export class PreparedCollective extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }
  readonly #use: () => LiveCommunicator
  readonly #kind: Kind
  readonly #send: MemoryLike
  readonly #recv: MemoryLike
  readonly #options: ReductionOptions
  #checked: CheckedCollective | undefined

  private constructor(
    use: () => LiveCommunicator,
    kind: Kind,
    send: MemoryLike,
    recv: MemoryLike,
    options: ReductionOptions,
  ) {
    requireMade(use, 'PreparedCollective', 'Communicator.prepareAllReduce and its siblings', 'function')
    super()
    this.#use = use
    this.#kind = kind
    this.#send = send
    this.#recv = recv
    checkOperands(use(), kind, send, recv, options)
    // A copy, because the program may change its object.
    this.#options = { ...options }
    this._current()
  }

  /** @internal */
  static _create(
    use: () => LiveCommunicator,
    kind: Kind,
    send: MemoryLike,
    recv: MemoryLike,
    options: ReductionOptions,
  ): PreparedCollective {
    return new PreparedCollective(use, kind, send, recv, options)
  }

  /**
   * Queues the collective, alone or in the open group.
   *
   * @throws DisposedError if a buffer, the stream or the communicator was disposed of; else as the collective itself.
   */
  launch(): void {
    try {
      const live = this.#use()
      queueChecked(live, this.#kind, this._current(live), this.#send, this.#recv, this.#options.stream)
    } catch (error) {
      // Counts the operation as started but not made.
      beginOperation()
      throw error
    }
  }

  get [Symbol.toStringTag](): string {
    return 'PreparedCollective'
  }

  override [inspectKey](): string {
    return inspectLine('PreparedCollective', { operation: this.#kind.name })
  }

  /** @internal The communicator. @throws DisposedError, CommunicatorStateError */
  get _live(): LiveCommunicator {
    return this.#use()
  }

  /** @internal Arguments for NCCL: the same object while memory and stream are unchanged. @throws DisposedError */
  _current(live: LiveCommunicator = this.#use()): CheckedCollective {
    const known = this.#checked
    const { stream } = this.#options
    if (
      known !== undefined &&
      this.#send[memoryProtocol] === known.source &&
      this.#recv[memoryProtocol] === known.target &&
      // A missing stream may mean another stream at each launch.
      stream !== undefined &&
      (typeof stream !== 'object' || stream === null || (stream as StreamLike)[streamProtocol] === known.queue)
    ) {
      return known
    }
    const checked = checkOperands(live, this.#kind, this.#send, this.#recv, this.#options)
    this.#checked = isLasting(checked) ? checked : undefined
    return checked
  }

  /** @internal */
  _call(checked: CheckedCollective): void {
    this.#kind.call(checked)
  }

  /** @internal Keeps its objects alive while a graph that captured it can launch. */
  _keep(): void {
    keepOnStream(this.#use(), this.#options.stream, [this.#send, this.#recv])
  }

  /** @internal */
  get _name(): string {
    return this.#kind.name
  }
}

/**
 * Prepared collectives that start together, as in a `group`, in one native call.
 *
 * Made by {@link prepareGroup}.
 */
export class PreparedGroup extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }
  readonly #collectives: readonly PreparedCollective[]
  #calls: RecordedCalls | undefined
  /** Arguments of the recorded calls. */
  #recorded: readonly CheckedCollective[] = []
  #context = 0n

  /** @internal */
  constructor(collectives: readonly PreparedCollective[]) {
    requireMade(collectives?.map, 'PreparedGroup', 'prepareGroup', 'function')
    super()
    this.#collectives = collectives
  }

  /**
   * Starts the collectives as one operation (`ncclGroupStart`, `ncclGroupEnd`).
   *
   * Inside another group, the collectives join that group. The first launch connects the ranks and compares their
   * calls, as `group` does.
   * @throws DisposedError if a buffer, a stream or a communicator was disposed of, before anything is started; else as
   * `group`.
   */
  launch(): void {
    if (this.#calls !== undefined && this.#isAsRecorded()) {
      const status = this.#calls.make(ncclResult_t.ncclInProgress)
      if (status !== 0) this.#fail(status)
      if (isCapturing()) for (const collective of this.#collectives) collective._keep()
      return
    }
    const collectives = this.#collectives
    group(() => {
      for (const collective of collectives) collective.launch()
    })
    if (!isGroupOpen() && !isCollecting()) this.#record()
  }

  get [Symbol.toStringTag](): string {
    return 'PreparedGroup'
  }

  override [inspectKey](): string {
    return inspectLine('PreparedGroup', { collectives: this.#collectives.length })
  }

  #isAsRecorded(): boolean {
    if (isGroupOpen() || isCollecting()) return false
    for (const [index, collective] of this.#collectives.entries()) {
      const live = collective._live
      if (live.pending !== undefined || collective._current(live) !== this.#recorded[index]) return false
      live.lastOperation = collective._name
    }
    return true
  }

  #record(): void {
    const [first] = this.#collectives
    if (first === undefined || this.#collectives.some(({ _live }) => !_live.isConnected)) return
    const recorded = this.#collectives.map((collective) => collective._current())
    // Operations that must be checked on every launch cannot be recorded.
    if (recorded.some((checked) => !isLasting(checked))) return
    const { context } = first._live
    this.#calls = recordCalls(() => {
      ncclGroupStart()
      for (const [index, collective] of this.#collectives.entries())
        collective._call(recorded[index] as CheckedCollective)
      // NCCL reads the current device when it starts a group.
      callInContext(context)
      ncclGroupEnd()
    })
    this.#recorded = recorded
    this.#context = context
  }

  #fail(status: number): void {
    const lost = contextError(this.#context)
    // In this case the group was not ended. If it was, NCCL reports that no group is open.
    if (lost !== undefined && ncclGroupEnd() === 0) return
    throw lost ?? ncclError(status, 'ncclGroupEnd')
  }
}

/**
 * Prepares a group of collectives, usually one per communicator of this thread.
 *
 * @example
 * ```ts
 * const step = prepareGroup(
 *   ranks.map(({ communicator, buffer, stream }) => communicator.prepareAllReduce(buffer, buffer, { stream })),
 * )
 * for (let i = 0; i < 1000; i += 1) step.launch()
 * ```
 *
 * @throws TypeError for other values than prepared collectives.
 */
export function prepareGroup(collectives: readonly PreparedCollective[]): PreparedGroup {
  const api = 'prepareGroup'
  const list = requireList(collectives, api, 'collectives', 'an array of prepared collectives')
  for (const [index, one] of list.entries()) requireInstance(one, api, `collectives[${index}]`, PreparedCollective)
  return new PreparedGroup(list)
}
