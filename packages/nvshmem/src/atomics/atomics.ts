import { nvshmem_ptr } from '@shoal/nvshmem-sys'
import {
  type DType,
  dtypeInfo,
  dtypes,
  FeatureNotSupportedError,
  inspectKey,
  inspectLine,
  type OptionKeys,
  PublicObject,
  requireInteger,
  requireMade,
  requireOptions,
} from '@shoal/types'
import { dtypesOf, type Family, typedFamily } from '../families.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import { elementAt } from '../operands.js'
import { waitOf } from '../queue/callQueue.js'
import type { LiveSession } from '../queue/liveSession.js'
import { type ElementOptions, elementKeys, type WaitingElementOptions, waitingElementKeys } from '../rma/element.js'
import { type ElementOf, type ElementValue, toNative } from '../values.js'
import { AtomicKernels, type KernelOperands } from './atomicKernels.js'
import { fromBits, toBits } from './bits.js'
import type { KernelOperation } from './kernelSource.js'

/** Dtypes of `fetch`, `set` and `swap`. */
export type AtomicDType = 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64'
/** Dtypes of the arithmetic operations and of compare and swap. */
export type ArithmeticDType = 'i32' | 'u32' | 'i64' | 'u64'
/** Dtypes of `and`, `or` and `xor`. */
export type BitwiseDType = ArithmeticDType

type Native = number | bigint
type Call = (address: bigint, ...rest: Native[]) => Native | undefined

/** The C functions: `nvshmem_<type>_atomic_<name>`. */
const families = {
  fetch: typedFamily<Call>('nvshmem_', '_atomic_fetch'),
  set: typedFamily<Call>('nvshmem_', '_atomic_set'),
  swap: typedFamily<Call>('nvshmem_', '_atomic_swap'),
  compareSwap: typedFamily<Call>('nvshmem_', '_atomic_compare_swap'),
  increment: typedFamily<Call>('nvshmem_', '_atomic_inc'),
  fetchIncrement: typedFamily<Call>('nvshmem_', '_atomic_fetch_inc'),
  add: typedFamily<Call>('nvshmem_', '_atomic_add'),
  fetchAdd: typedFamily<Call>('nvshmem_', '_atomic_fetch_add'),
  and: typedFamily<Call>('nvshmem_', '_atomic_and'),
  fetchAnd: typedFamily<Call>('nvshmem_', '_atomic_fetch_and'),
  or: typedFamily<Call>('nvshmem_', '_atomic_or'),
  fetchOr: typedFamily<Call>('nvshmem_', '_atomic_fetch_or'),
  xor: typedFamily<Call>('nvshmem_', '_atomic_xor'),
  fetchXor: typedFamily<Call>('nvshmem_', '_atomic_fetch_xor'),
} as const

type Operation = keyof typeof families

const namesOf = (suffix: string): { readonly [O in Operation]: string } =>
  Object.fromEntries(
    Object.keys(families).map((operation) => [operation, `Session.atomics.${operation}${suffix}`]),
  ) as { readonly [O in Operation]: string }
const names = namesOf('')
const syncNames = namesOf('Sync')

/**
 * Atomic operations on one element of a PE's symmetric memory.
 *
 * These operations are atomic with respect to atomics of other PEs and of kernels. `index` in the options selects the
 * element; default: the first. Operations without a result are complete after `quiet()` or a barrier.
 *
 * NVIDIA's NVSHMEM (3.4.5) exports these functions but does not implement them for the host. On GPUs, kernels of one
 * thread replace them, with system scope. For a PE whose memory this process cannot address, such as one on another
 * machine, they throw FeatureNotSupportedError. The software device implements the functions.
 *
 * Each call waits for its turn among the calls of the session; the `…Sync` twins block the thread. All methods throw
 * TypeError and RangeError for wrong arguments, DisposedError, SessionStuckError. Methods that return a promise also
 * throw TimeoutError and AbortedError.
 *
 * @example
 * ```ts
 * const counter = await session.allocate('u64', 1, { zeroed: true })
 * const before = await session.atomics.fetchAdd(counter, 1n, { pe: 0 }) // every PE gets another number
 * ```
 */
export class AtomicOperations extends PublicObject {
  readonly #live: LiveSession
  readonly #kernels: AtomicSupport

  /** @internal */
  constructor(live: LiveSession, kernels: AtomicSupport) {
    requireMade(live?.queue, 'AtomicOperations', 'Session.atomics', 'object')
    super()
    this.#live = live
    this.#kernels = kernels
  }

  /** Returns the element (`nvshmem_<type>_atomic_fetch`). */
  fetch<D extends AtomicDType>(target: SymmetricBuffer<D>, options: WaitingElementOptions): Promise<ElementOf<D>> {
    return this.#result('fetch', target, [], options)
  }

  /** Like {@link fetch}, but blocks the thread. @throws BusyError */
  fetchSync<D extends AtomicDType>(target: SymmetricBuffer<D>, options: ElementOptions): ElementOf<D> {
    return this.#sync('fetch', target, [], options)
  }

  /** Writes a value (`nvshmem_<type>_atomic_set`). */
  set<D extends AtomicDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<void> {
    return this.#done('set', target, [value], options)
  }

  /** Like {@link set}, but blocks the thread. @throws BusyError */
  setSync<D extends AtomicDType>(target: SymmetricBuffer<D>, value: ElementValue<D>, options: ElementOptions): void {
    this.#sync('set', target, [value], options)
  }

  /** Writes a value and returns the previous one (`nvshmem_<type>_atomic_swap`). */
  swap<D extends AtomicDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<ElementOf<D>> {
    return this.#result('swap', target, [value], options)
  }

  /** Like {@link swap}, but blocks the thread. @throws BusyError */
  swapSync<D extends AtomicDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: ElementOptions,
  ): ElementOf<D> {
    return this.#sync('swap', target, [value], options)
  }

  /**
   * Writes `desired` if the element equals `expected` (`nvshmem_<type>_atomic_compare_swap`).
   *
   * Returns the previous value. The element was written if the previous value equals `expected`.
   */
  compareSwap<D extends ArithmeticDType>(
    target: SymmetricBuffer<D>,
    expected: ElementValue<D>,
    desired: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<ElementOf<D>> {
    return this.#result('compareSwap', target, [expected, desired], options)
  }

  /** Like {@link compareSwap}, but blocks the thread. @throws BusyError */
  compareSwapSync<D extends ArithmeticDType>(
    target: SymmetricBuffer<D>,
    expected: ElementValue<D>,
    desired: ElementValue<D>,
    options: ElementOptions,
  ): ElementOf<D> {
    return this.#sync('compareSwap', target, [expected, desired], options)
  }

  /** Adds 1 (`nvshmem_<type>_atomic_inc`). */
  increment(target: SymmetricBuffer<ArithmeticDType>, options: WaitingElementOptions): Promise<void> {
    return this.#done('increment', target, [], options)
  }

  /** Like {@link increment}, but blocks the thread. @throws BusyError */
  incrementSync(target: SymmetricBuffer<ArithmeticDType>, options: ElementOptions): void {
    this.#sync('increment', target, [], options)
  }

  /** Adds 1 and returns the previous value (`nvshmem_<type>_atomic_fetch_inc`). */
  fetchIncrement<D extends ArithmeticDType>(
    target: SymmetricBuffer<D>,
    options: WaitingElementOptions,
  ): Promise<ElementOf<D>> {
    return this.#result('fetchIncrement', target, [], options)
  }

  /** Like {@link fetchIncrement}, but blocks the thread. @throws BusyError */
  fetchIncrementSync<D extends ArithmeticDType>(target: SymmetricBuffer<D>, options: ElementOptions): ElementOf<D> {
    return this.#sync('fetchIncrement', target, [], options)
  }

  /** Adds a value; overflow wraps around (`nvshmem_<type>_atomic_add`). */
  add<D extends ArithmeticDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<void> {
    return this.#done('add', target, [value], options)
  }

  /** Like {@link add}, but blocks the thread. @throws BusyError */
  addSync<D extends ArithmeticDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: ElementOptions,
  ): void {
    this.#sync('add', target, [value], options)
  }

  /** Adds a value and returns the previous value (`nvshmem_<type>_atomic_fetch_add`). */
  fetchAdd<D extends ArithmeticDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<ElementOf<D>> {
    return this.#result('fetchAdd', target, [value], options)
  }

  /** Like {@link fetchAdd}, but blocks the thread. @throws BusyError */
  fetchAddSync<D extends ArithmeticDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: ElementOptions,
  ): ElementOf<D> {
    return this.#sync('fetchAdd', target, [value], options)
  }

  /** Combines the element with a value by bitwise AND (`nvshmem_<type>_atomic_and`). */
  and<D extends BitwiseDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<void> {
    return this.#done('and', target, [value], options)
  }

  /** Like {@link and}, but blocks the thread. @throws BusyError */
  andSync<D extends BitwiseDType>(target: SymmetricBuffer<D>, value: ElementValue<D>, options: ElementOptions): void {
    this.#sync('and', target, [value], options)
  }

  /** Like {@link and}, but returns the previous value (`nvshmem_<type>_atomic_fetch_and`). */
  fetchAnd<D extends BitwiseDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<ElementOf<D>> {
    return this.#result('fetchAnd', target, [value], options)
  }

  /** Like {@link fetchAnd}, but blocks the thread. @throws BusyError */
  fetchAndSync<D extends BitwiseDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: ElementOptions,
  ): ElementOf<D> {
    return this.#sync('fetchAnd', target, [value], options)
  }

  /** Combines the element with a value by bitwise OR (`nvshmem_<type>_atomic_or`). */
  or<D extends BitwiseDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<void> {
    return this.#done('or', target, [value], options)
  }

  /** Like {@link or}, but blocks the thread. @throws BusyError */
  orSync<D extends BitwiseDType>(target: SymmetricBuffer<D>, value: ElementValue<D>, options: ElementOptions): void {
    this.#sync('or', target, [value], options)
  }

  /** Like {@link or}, but returns the previous value (`nvshmem_<type>_atomic_fetch_or`). */
  fetchOr<D extends BitwiseDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<ElementOf<D>> {
    return this.#result('fetchOr', target, [value], options)
  }

  /** Like {@link fetchOr}, but blocks the thread. @throws BusyError */
  fetchOrSync<D extends BitwiseDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: ElementOptions,
  ): ElementOf<D> {
    return this.#sync('fetchOr', target, [value], options)
  }

  /** Combines the element with a value by bitwise XOR (`nvshmem_<type>_atomic_xor`). */
  xor<D extends BitwiseDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<void> {
    return this.#done('xor', target, [value], options)
  }

  /** Like {@link xor}, but blocks the thread. @throws BusyError */
  xorSync<D extends BitwiseDType>(target: SymmetricBuffer<D>, value: ElementValue<D>, options: ElementOptions): void {
    this.#sync('xor', target, [value], options)
  }

  /** Like {@link xor}, but returns the previous value (`nvshmem_<type>_atomic_fetch_xor`). */
  fetchXor<D extends BitwiseDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: WaitingElementOptions,
  ): Promise<ElementOf<D>> {
    return this.#result('fetchXor', target, [value], options)
  }

  /** Like {@link fetchXor}, but blocks the thread. @throws BusyError */
  fetchXorSync<D extends BitwiseDType>(
    target: SymmetricBuffer<D>,
    value: ElementValue<D>,
    options: ElementOptions,
  ): ElementOf<D> {
    return this.#sync('fetchXor', target, [value], options)
  }

  get [Symbol.toStringTag](): string {
    return 'AtomicOperations'
  }

  /** @internal */
  override [inspectKey](): string {
    const kernels =
      this.#kernels === 'library' ? 'library' : this.#kernels instanceof AtomicKernels ? 'kernels' : 'none'
    return inspectLine('AtomicOperations', { pe: this.#live.pe, madeBy: kernels })
  }

  async #result<D extends DType>(
    operation: Operation,
    target: SymmetricBuffer<D>,
    values: readonly unknown[],
    options: WaitingElementOptions,
  ): Promise<ElementOf<D>> {
    const api = names[operation]
    const checked = this.#check(operation, target, values, options, waitingElementKeys, api)
    const wait = waitOf(options)
    if (this.#kernels === 'library') {
      const [result] = await this.#live.queue.run(api, checked.call, { wait })
      return result as ElementOf<D>
    }
    const bits = await this.#kernelsOf(checked, api).run(this.#operands(operation, checked, api), api, wait)
    return fromBits(checked.dtype, bits) as ElementOf<D>
  }

  async #done(
    operation: Operation,
    target: SymmetricBuffer<DType>,
    values: readonly unknown[],
    options: WaitingElementOptions,
  ): Promise<void> {
    await this.#result(operation, target, values, options)
  }

  #sync<D extends DType>(
    operation: Operation,
    target: SymmetricBuffer<D>,
    values: readonly unknown[],
    options: ElementOptions,
  ): ElementOf<D> {
    const api = syncNames[operation]
    const checked = this.#check(operation, target, values, options, elementKeys, api)
    if (this.#kernels === 'library') return this.#live.queue.callSync(api, checked.call) as ElementOf<D>
    const bits = this.#kernelsOf(checked, api).runSync(this.#operands(operation, checked, api), api)
    return fromBits(checked.dtype, bits) as ElementOf<D>
  }

  #check<O extends ElementOptions>(
    operation: Operation,
    target: unknown,
    values: readonly unknown[],
    options: O,
    keys: OptionKeys<O>,
    api: string,
  ): Checked {
    this.#live.requireOpen(api)
    requireOptions(options, api, keys)
    const pe = requireInteger(options.pe, api, 'pe', 0, this.#live.peCount - 1)
    const { address, dtype } = elementAt(this.#live, target, options.index, api, 'target')
    const call = functionOf(families[operation], dtype, operation, api)
    const names = operation === 'compareSwap' ? ['expected', 'desired'] : ['value']
    const natives = values.map((value, index) => toNative(dtype, value, api, names[index] as string))
    return { dtype, address, pe, natives, call: () => call(address, ...natives, pe) }
  }

  #kernelsOf({ pe }: Checked, api: string): AtomicKernels {
    if (this.#kernels instanceof AtomicKernels) return this.#kernels
    const cause = this.#kernels === 'library' ? undefined : this.#kernels.cause
    throw notSupported(pe, api, 'the kernels that take their place could not be loaded', cause)
  }

  #operands(operation: Operation, { dtype, address, pe, natives }: Checked, api: string): KernelOperands {
    // A table look-up, which needs no turn.
    const target = nvshmem_ptr(address, pe)
    if (target === 0n) throw notSupported(pe, api, 'its memory cannot be addressed by this process')
    const [value, expected] = kernelValues(operation, natives)
    return {
      operation: kernelOf[operation],
      bits: dtypeInfo(dtype).bytes === 8 ? 64 : 32,
      target,
      value: value === undefined ? (operation === 'fetch' ? 0n : 1n) : toBits(dtype, value),
      expected: expected === undefined ? 0n : toBits(dtype, expected),
    }
  }
}

/** Implementation of atomics: NVSHMEM's functions, kernels, or the reason why neither works. */
export type AtomicSupport = 'library' | AtomicKernels | { readonly cause: unknown }

interface Checked {
  readonly dtype: DType
  readonly address: bigint
  readonly pe: number
  readonly natives: readonly Native[]
  /** Calls NVSHMEM's function. */
  readonly call: () => unknown
}

/** The kernel of each operation. A fetch is an OR with 0, an increment adds 1. */
const kernelOf: { readonly [O in Operation]: KernelOperation } = {
  fetch: 'or',
  set: 'exchange',
  swap: 'exchange',
  compareSwap: 'compareSwap',
  increment: 'add',
  fetchIncrement: 'add',
  add: 'add',
  fetchAdd: 'add',
  and: 'and',
  fetchAnd: 'and',
  or: 'or',
  fetchOr: 'or',
  xor: 'xor',
  fetchXor: 'xor',
}

/** Returns the value to apply, and the expected value for compare and swap. */
function kernelValues(operation: Operation, natives: readonly Native[]): [Native | undefined, Native | undefined] {
  return operation === 'compareSwap' ? [natives[1], natives[0]] : [natives[0], undefined]
}

function notSupported(pe: number, api: string, reason: string, cause?: unknown): FeatureNotSupportedError {
  return new FeatureNotSupportedError({
    library: 'NVSHMEM',
    api: `${api} on PE ${pe}`,
    reason: `it implements no atomics for the host, and ${reason}`,
    cause,
  })
}

function functionOf(family: Family<Call>, dtype: DType, operation: Operation, api: string): Call {
  const call = family(dtype)
  if (call !== undefined) return call
  throw new TypeError(`${api}: NVSHMEM has no atomic ${operation} of ${dtype}, only of ${dtypesOf(family, dtypes)}`)
}
