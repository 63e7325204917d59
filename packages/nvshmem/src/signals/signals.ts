import {
  type cudaStream_t,
  nvshmem_signal_fetch,
  nvshmemx_signal_op_on_stream,
  nvshmemx_signal_wait_until_on_stream,
} from '@shoal/nvshmem-sys'
import { type DType, dtypes, type MemoryLike } from '@shoal/types'
import { requireCount, requireOptions, requirePe, requireWord } from '../checks.js'
import { dtypesOf, type Family, typedFamily } from '../families.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { elementAt, localAt, requireRoom, requireSameDType, streamAt, symmetricAt } from '../operands.js'
import type { LiveSession } from '../queue/liveSession.js'
import type { OnStreamOptions } from '../collectives/synchronization.js'
import { type ElementValue, toNative } from '../values.js'
import { signalAt } from './signalAt.js'
import { type Comparison, comparisons, type SignalOp, signalOps } from './operators.js'

/** The dtypes that a stream can wait for. */
export type WaitableDType = 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64'

/** Which signal of a buffer. */
export interface SignalIndex {
  /** The element of the signal memory. Default 0. */
  readonly index?: number | undefined
}

/** What becomes of another PE's signal. */
export interface SignalOptions extends SignalIndex, OnStreamOptions {
  /** The PE whose word is updated. */
  readonly pe: number
  /** What the word is set to, or what is added to it. */
  readonly value: bigint | number
  /** Default `'set'`. */
  readonly op?: SignalOp | undefined
}

/** What is waited for: a word of this PE's own memory that compares so with a value. */
export interface WaitUntilOptions<D extends DType = DType> extends SignalIndex, OnStreamOptions {
  /** How the word has to compare. */
  readonly comparison: Comparison
  /** What it is compared with. */
  readonly value: ElementValue<D>
}

/** The same for several words. */
export interface WaitUntilAllOptions<D extends DType = DType> extends OnStreamOptions {
  /** How each word has to compare. */
  readonly comparison: Comparison
  /** What each word is compared with. */
  readonly value: ElementValue<D>
  /** Number of words. Default: all of the buffer. */
  readonly count?: number | undefined
  /** Device memory of `i32`, one a word: words whose entry is not 0 are left out. Default: none is. */
  readonly ignore?: MemoryLike | undefined
}

/** The same for several words with a value each. */
export interface WaitUntilAllVectorOptions extends OnStreamOptions {
  /** How each word has to compare. */
  readonly comparison: Comparison
  /** Device memory with the value for each word, of the words' dtype. */
  readonly values: MemoryLike
  /** Number of words. Default: all of the buffer. */
  readonly count?: number | undefined
  /** Device memory of `i32`, one a word: words whose entry is not 0 are left out. Default: none is. */
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

const waitUntil: Family<WaitUntil> = typedFamily('nvshmemx_', '_wait_until_on_stream')
const waitUntilAll: Family<WaitUntilAll> = typedFamily('nvshmemx_', '_wait_until_all_on_stream')
const waitUntilAllVector: Family<WaitUntilAll> = typedFamily('nvshmemx_', '_wait_until_all_vector_on_stream')

/**
 * Words in symmetric memory by which PEs tell each other that something has happened: a stream of one PE sets or adds, a
 * stream of the other waits. A stream that waits for a signal that never comes never goes on; nothing can end that wait
 * but the end of the process.
 */
export class Signals {
  readonly #live: LiveSession

  /** @internal */
  constructor(live: LiveSession) {
    this.#live = live
  }

  /** This PE's signal as it is now (`nvshmem_signal_fetch`). */
  async fetch(signal: SymmetricBuffer<'u64'>, options: SignalIndex = {}): Promise<bigint> {
    const api = 'Signals.fetch'
    this.#live.requireOpen(api)
    requireOptions(options, api, '{ index }')
    const address = signalAt(this.#live, signal, options.index, api, 'signal')
    return BigInt((await this.#live.queue.runOne(api, () => nvshmem_signal_fetch(address))) as bigint)
  }

  /** Like {@link fetch}, and blocks the thread. @throws SessionBusyError */
  fetchSync(signal: SymmetricBuffer<'u64'>, options: SignalIndex = {}): bigint {
    const api = 'Signals.fetchSync'
    this.#live.requireOpen(api)
    requireOptions(options, api, '{ index }')
    const address = signalAt(this.#live, signal, options.index, api, 'signal')
    return this.#live.queue.callSync(api, () => nvshmem_signal_fetch(address))
  }

  /** Queues the setting of, or the adding to, a signal of another PE (`nvshmemx_signal_op_on_stream`). */
  signalOnStream(signal: SymmetricBuffer<'u64'>, options: SignalOptions): Promise<void> {
    return this.#queue('signalOnStream', (live, api) => {
      requireOptions(options, api, '{ pe, value, stream, op, index }')
      const pe = requirePe(options.pe, live.peCount, api)
      const address = signalAt(live, signal, options.index, api, 'signal')
      const value = toNative('u64', options.value, api, 'value')
      const op = requireWord(signalOps, options.op ?? 'set', 'op', api)
      const stream = streamAt(live, options.stream, api)
      return () => nvshmemx_signal_op_on_stream(address, value, op, pe, stream)
    })
  }

  /** Makes a stream wait until this PE's signal compares so with a value (`nvshmemx_signal_wait_until_on_stream`). */
  waitForSignalOnStream(signal: SymmetricBuffer<'u64'>, options: WaitUntilOptions<'u64'>): Promise<void> {
    return this.#queue('waitForSignalOnStream', (live, api) => {
      requireOptions(options, api, '{ comparison, value, stream, index }')
      const address = signalAt(live, signal, options.index, api, 'signal')
      const comparison = requireWord(comparisons, options.comparison, 'comparison', api)
      const value = toNative('u64', options.value, api, 'value')
      const stream = streamAt(live, options.stream, api)
      return () => nvshmemx_signal_wait_until_on_stream(address, comparison, value, stream)
    })
  }

  /** Makes a stream wait until one word of this PE compares so with a value (`nvshmemx_<type>_wait_until_on_stream`). */
  waitUntilOnStream<D extends WaitableDType>(words: SymmetricBuffer<D>, options: WaitUntilOptions<D>): Promise<void> {
    return this.#queue('waitUntilOnStream', (live, api) => {
      requireOptions(options, api, '{ comparison, value, stream, index }')
      const { address, dtype } = elementAt(live, words, options.index, api, 'words')
      const call = waitable(waitUntil, dtype, api)
      const comparison = requireWord(comparisons, options.comparison, 'comparison', api)
      const value = toNative(dtype, options.value, api, 'value')
      const stream = streamAt(live, options.stream, api)
      return () => call(address, comparison, value, stream)
    })
  }

  /** Makes a stream wait until all words do (`nvshmemx_<type>_wait_until_all_on_stream`). */
  waitUntilAllOnStream<D extends WaitableDType>(
    words: SymmetricBuffer<D>,
    options: WaitUntilAllOptions<D>,
  ): Promise<void> {
    return this.#queue('waitUntilAllOnStream', (live, api) => {
      requireOptions(options, api, '{ comparison, value, stream, count, ignore }')
      const { address, dtype, count, ignore } = wordsAt(live, words, options, api)
      const call = waitable(waitUntilAll, dtype, api)
      const comparison = requireWord(comparisons, options.comparison, 'comparison', api)
      const value = toNative(dtype, options.value, api, 'value')
      const stream = streamAt(live, options.stream, api)
      return () => call(address, count, ignore, comparison, value, stream)
    })
  }

  /** The same with a value for each word (`nvshmemx_<type>_wait_until_all_vector_on_stream`). */
  waitUntilAllVectorOnStream<D extends WaitableDType>(
    words: SymmetricBuffer<D>,
    options: WaitUntilAllVectorOptions,
  ): Promise<void> {
    return this.#queue('waitUntilAllVectorOnStream', (live, api) => {
      requireOptions(options, api, '{ comparison, values, stream, count, ignore }')
      const { address, dtype, count, ignore } = wordsAt(live, words, options, api)
      const call = waitable(waitUntilAllVector, dtype, api)
      const comparison = requireWord(comparisons, options.comparison, 'comparison', api)
      const values = localAt(live, options.values, api, 'values', false)
      requireSameDType(values, dtype, { local: 'values', remote: 'words' }, api)
      requireRoom(values.byteLength, count, dtype, 'values', api)
      const stream = streamAt(live, options.stream, api)
      return () => call(address, count, ignore, comparison, values.address, stream)
    })
  }

  #queue(method: string, check: (live: LiveSession, api: string) => () => void): Promise<void> {
    const api = `Signals.${method}`
    try {
      this.#live.requireOpen(api)
      return this.#live.queue.start(api, check(this.#live, api))
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

function wordsAt(
  live: LiveSession,
  words: unknown,
  options: { readonly count?: number | undefined; readonly ignore?: MemoryLike | undefined },
  api: string,
): { readonly address: bigint; readonly dtype: DType; readonly count: number; readonly ignore: bigint | null } {
  const { address, dtype, length, byteLength } = symmetricAt(live, words, api, 'words')
  const count = options.count === undefined ? length : requireCount(options.count, 'count', 0, api)
  requireRoom(byteLength, count, dtype, 'words', api)
  if (options.ignore === undefined) return { address, dtype, count, ignore: null }
  const ignore = localAt(live, options.ignore, api, 'ignore', false)
  requireSameDType(ignore, 'i32', { local: 'ignore', remote: 'the statuses' }, api)
  requireRoom(ignore.byteLength, count, 'i32', 'ignore', api)
  return { address, dtype, count, ignore: ignore.address }
}
