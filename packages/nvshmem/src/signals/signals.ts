import {
  type cudaStream_t,
  nvshmem_signal_fetch,
  nvshmemx_signal_op_on_stream,
  nvshmemx_signal_wait_until_on_stream,
} from '@shoal/nvshmem-sys'
import {
  type DType,
  dtypes,
  inspectKey,
  inspectLine,
  type MemoryLike,
  type OptionKeys,
  optionalOptions,
  PublicObject,
  requireCount,
  requireInteger,
  requireKeyOf,
  requireMade,
  requireOptions,
} from '@shoal/types'
import type { OnStreamOptions } from '../collectives/synchronization.js'
import { dtypesOf, type Family, typedFamily } from '../families.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { elementAt, localAt, requireDType, requireRoom, requireSameDType, streamAt, symmetricAt } from '../operands.js'
import type { LiveSession } from '../queue/liveSession.js'
import { startOnStream } from '../queue/onStream.js'
import { type ElementValue, toNative } from '../values.js'
import { type Comparison, comparisons, type SignalOp, signalOps } from './operators.js'
import { signalAt } from './signalAt.js'

/** The dtypes that a stream can wait for. */
export type WaitableDType = 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64'

/** Selects a signal of a buffer. */
export interface SignalIndex {
  /** Index in the signal memory. Default: 0. */
  readonly index?: number | undefined
}

/** Options of a signal update. */
export interface SignalOptions extends SignalIndex, OnStreamOptions {
  /** PE whose signal to update, from 0 to `peCount` - 1. */
  readonly pe: number
  /** Value to set the signal to, or to add to it. */
  readonly value: bigint | number
  /** Default: `'set'`. */
  readonly op?: SignalOp | undefined
}

/** Condition on an element of this PE's memory. */
export interface WaitUntilOptions<D extends DType = DType> extends SignalIndex, OnStreamOptions {
  /** Comparison to satisfy. */
  readonly comparison: Comparison
  /** Value to compare with. */
  readonly value: ElementValue<D>
}

/** Condition on several elements with one value. */
export interface WaitUntilAllOptions<D extends DType = DType> extends OnStreamOptions {
  /** Comparison that each element must satisfy. */
  readonly comparison: Comparison
  /** Value to compare each element with. */
  readonly value: ElementValue<D>
  /** Number of elements. Default: all elements of the buffer. */
  readonly count?: number | undefined
  /** Device memory of `i32` with an entry per element; a nonzero entry excludes the element. Default: none. */
  readonly ignore?: MemoryLike | undefined
}

/** Condition on several elements with one value per element. */
export interface WaitUntilAllVectorOptions extends OnStreamOptions {
  /** Comparison that each element must satisfy. */
  readonly comparison: Comparison
  /** Device memory with the value for each element, of the same dtype. */
  readonly values: MemoryLike
  /** Number of elements. Default: all elements of the buffer. */
  readonly count?: number | undefined
  /** Device memory of `i32` with an entry per element; a nonzero entry excludes the element. Default: none. */
  readonly ignore?: MemoryLike | undefined
}

type WaitUntil = (address: bigint, comparison: number, value: number | bigint, stream: cudaStream_t) => void
type WaitUntilAll = (
  address: bigint,
  count: number,
  ignore: bigint | null,
  comparison: number,
  value: number | bigint,
  stream: cudaStream_t,
) => void

const indexKeys: OptionKeys<SignalIndex> = { index: true }
const signalKeys: OptionKeys<SignalOptions> = { pe: true, value: true, stream: true, op: true, index: true }
const waitUntilKeys: OptionKeys<WaitUntilOptions> = { comparison: true, value: true, stream: true, index: true }
const severalKeys = { comparison: true, stream: true, count: true, ignore: true } as const
const waitUntilAllKeys: OptionKeys<WaitUntilAllOptions> = { ...severalKeys, value: true }
const vectorKeys: OptionKeys<WaitUntilAllVectorOptions> = { ...severalKeys, values: true }

const waitUntil: Family<WaitUntil> = typedFamily('nvshmemx_', '_wait_until_on_stream')
const waitUntilAll: Family<WaitUntilAll> = typedFamily('nvshmemx_', '_wait_until_all_on_stream')
const waitUntilAllVector: Family<WaitUntilAll> = typedFamily('nvshmemx_', '_wait_until_all_vector_on_stream')

/**
 * Signals: elements of symmetric `u64` memory with which PEs notify each other.
 *
 * A stream of one PE sets a signal or adds to it, and a stream of another PE waits for it. A stream that waits for a
 * signal that never arrives waits forever; only the end of the process ends that wait.
 *
 * Methods that end in `OnStream` queue work; the promise settles when the work is queued. All throw TypeError and
 * RangeError for wrong arguments, DisposedError, SessionStuckError, AbortedError.
 *
 * @example
 * ```ts
 * const signal = await session.allocate('u64', 1, { zeroed: true })
 * await session.putSignalOnStream(inbox, outbox, { pe: next, signal, value: 1n, stream })
 * await session.signals.waitForSignalOnStream(signal, { comparison: '==', value: 1n, stream }) // the PE before has put
 * ```
 */
export class Signals extends PublicObject {
  readonly #live: LiveSession

  /** @internal */
  constructor(live: LiveSession) {
    requireMade(live?.queue, 'Signals', 'Session.signals', 'object')
    super()
    this.#live = live
  }

  /** Returns a signal of this PE (`nvshmem_signal_fetch`), in turn with the session's other calls. */
  async fetch(signal: SymmetricBuffer<'u64'>, options?: SignalIndex): Promise<bigint> {
    const api = 'Signals.fetch'
    const address = this.#signalToFetch(signal, options, api)
    const [value] = await this.#live.queue.run(api, () => nvshmem_signal_fetch(address))
    return value as bigint
  }

  /** Like {@link fetch}, but blocks the thread. @throws BusyError */
  fetchSync(signal: SymmetricBuffer<'u64'>, options?: SignalIndex): bigint {
    const api = 'Signals.fetchSync'
    const address = this.#signalToFetch(signal, options, api)
    return this.#live.queue.callSync(api, () => nvshmem_signal_fetch(address))
  }

  /** Queues an update of a signal of another PE (`nvshmemx_signal_op_on_stream`). */
  signalOnStream(signal: SymmetricBuffer<'u64'>, options: SignalOptions): Promise<void> {
    return this.#queue('signalOnStream', options, signalKeys, signal, (live, api) => {
      const pe = requireInteger(options.pe, api, 'pe', 0, live.peCount - 1)
      const address = signalAt(live, signal, options.index, api, 'signal')
      const value = toNative('u64', options.value, api, 'value')
      const op = requireKeyOf(options.op === undefined ? 'set' : options.op, api, 'op', signalOps)
      const stream = streamAt(live, options.stream, api)
      return { call: () => nvshmemx_signal_op_on_stream(address, value, op, pe, stream), stream }
    })
  }

  /** Makes a stream wait until a signal of this PE satisfies a comparison (`nvshmemx_signal_wait_until_on_stream`). */
  waitForSignalOnStream(signal: SymmetricBuffer<'u64'>, options: WaitUntilOptions<'u64'>): Promise<void> {
    return this.#queue('waitForSignalOnStream', options, waitUntilKeys, signal, (live, api) => {
      const address = signalAt(live, signal, options.index, api, 'signal')
      const comparison = requireKeyOf(options.comparison, api, 'comparison', comparisons)
      const value = toNative('u64', options.value, api, 'value')
      const stream = streamAt(live, options.stream, api)
      return { call: () => nvshmemx_signal_wait_until_on_stream(address, comparison, value, stream), stream }
    })
  }

  /**
   * Makes a stream wait until one element of this PE satisfies a comparison (`nvshmemx_<type>_wait_until_on_stream`).
   */
  waitUntilOnStream<D extends WaitableDType>(
    variables: SymmetricBuffer<D>,
    options: WaitUntilOptions<D>,
  ): Promise<void> {
    return this.#queue('waitUntilOnStream', options, waitUntilKeys, variables, (live, api) => {
      const { address, dtype } = elementAt(live, variables, options.index, api, 'variables')
      const call = waitable(waitUntil, dtype, api)
      const comparison = requireKeyOf(options.comparison, api, 'comparison', comparisons)
      const value = toNative(dtype, options.value, api, 'value')
      const stream = streamAt(live, options.stream, api)
      return { call: () => call(address, comparison, value, stream), stream }
    })
  }

  /** Makes a stream wait until all elements satisfy a comparison (`nvshmemx_<type>_wait_until_all_on_stream`). */
  waitUntilAllOnStream<D extends WaitableDType>(
    variables: SymmetricBuffer<D>,
    options: WaitUntilAllOptions<D>,
  ): Promise<void> {
    return this.#queue('waitUntilAllOnStream', options, waitUntilAllKeys, variables, (live, api) => {
      const { address, dtype, count, ignore } = variablesAt(live, variables, options, api)
      const call = waitable(waitUntilAll, dtype, api)
      const comparison = requireKeyOf(options.comparison, api, 'comparison', comparisons)
      const value = toNative(dtype, options.value, api, 'value')
      const stream = streamAt(live, options.stream, api, options.ignore)
      return { call: () => call(address, count, ignore, comparison, value, stream), stream }
    })
  }

  /**
   * Like {@link waitUntilAllOnStream}, with one value per element (`nvshmemx_<type>_wait_until_all_vector_on_stream`).
   */
  waitUntilAllVectorOnStream<D extends WaitableDType>(
    variables: SymmetricBuffer<D>,
    options: WaitUntilAllVectorOptions,
  ): Promise<void> {
    return this.#queue('waitUntilAllVectorOnStream', options, vectorKeys, variables, (live, api) => {
      const { address, dtype, count, ignore } = variablesAt(live, variables, options, api)
      const call = waitable(waitUntilAllVector, dtype, api)
      const comparison = requireKeyOf(options.comparison, api, 'comparison', comparisons)
      const values = localAt(live, options.values, api, 'values', false)
      requireSameDType(values, dtype, { local: 'values', remote: 'variables' }, api)
      requireRoom(values.byteLength, count, dtype, 'values', api)
      const stream = streamAt(live, options.stream, api, options.ignore, options.values)
      return { call: () => call(address, count, ignore, comparison, values.address, stream), stream }
    })
  }

  get [Symbol.toStringTag](): string {
    return 'Signals'
  }

  /** @internal */
  override [inspectKey](): string {
    return inspectLine('Signals', { pe: this.#live.pe })
  }

  #signalToFetch(signal: unknown, options: unknown, api: string): bigint {
    this.#live.requireOpen(api)
    const { index } = optionalOptions(options, api, indexKeys)
    return signalAt(this.#live, signal, index, api, 'signal')
  }

  #queue<
    O extends OnStreamOptions & { readonly ignore?: MemoryLike | undefined; readonly values?: MemoryLike | undefined },
  >(
    method: string,
    options: O,
    keys: OptionKeys<O>,
    memory: SymmetricBuffer,
    check: (live: LiveSession, api: string) => { readonly call: () => void; readonly stream: bigint },
  ): Promise<void> {
    const api = `Signals.${method}`
    try {
      this.#live.requireOpen(api)
      requireOptions(options, api, keys)
      const { stream, ignore, values } = options
      return startOnStream(this.#live, {
        api,
        ...check(this.#live, api),
        given: stream,
        uses: [memory, ignore, values],
      })
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

function waitable<F>(family: Family<F>, dtype: DType, api: string): F {
  const call = family(dtype)
  if (call !== undefined) return call
  throw new TypeError(`${api}: no stream can wait for ${dtype}; for ${dtypesOf(family, dtypes)} it can`)
}

function variablesAt(
  live: LiveSession,
  variables: unknown,
  options: { readonly count?: number | undefined; readonly ignore?: MemoryLike | undefined },
  api: string,
): { readonly address: bigint; readonly dtype: DType; readonly count: number; readonly ignore: bigint | null } {
  const { address, dtype: type, length, byteLength } = symmetricAt(live, variables, api, 'variables')
  const dtype = requireDType(type, api, 'variables')
  const count = options.count === undefined ? length : requireCount(options.count, api, 'count')
  requireRoom(byteLength, count, dtype, 'variables', api)
  if (options.ignore === undefined) return { address, dtype, count, ignore: null }
  const ignore = localAt(live, options.ignore, api, 'ignore', false)
  requireSameDType(ignore, 'i32', { local: 'ignore', remote: 'the statuses' }, api)
  requireRoom(ignore.byteLength, count, 'i32', 'ignore', api)
  return { address, dtype, count, ignore: ignore.address }
}
