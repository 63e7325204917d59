import {
  type ncclDataType_t,
  type ncclRedOp_t,
  ncclRedOpCreatePreMulSum,
  ncclRedOpDestroy,
  ncclScalarResidence_t,
} from '@shoal/nccl-sys'
import {
  DisposedError,
  type DType,
  dtypeInfo,
  dtypes,
  encodeArray,
  inspectKey,
  inspectLine,
  isInstance,
  isMemoryLike,
  loadedFrom,
  type MemoryLike,
  type MemoryRange,
  type OptionKeys,
  PublicObject,
  requireMade,
  requireOneOf,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { checkRoom, memoryAt, type WireType } from '../arguments/operands.js'
import { checkNccl } from '../errors.js'
import { afterCollected } from '../group/groupOffThread.js'
import { callNow } from '../group/submit.js'
import { addChild, type Child, type LiveCommunicator, removeChild, requireIdle } from '../lifetime/live.js'
import { reducible } from './counts.js'

/** Options of a pre-multiplied sum. */
export interface PreMulSumOptions {
  /** Type of the elements and the scalar. Required unless the scalar is memory with a dtype. */
  readonly dtype?: DType | undefined
}

/**
 * A reduction that multiplies this rank's elements by a scalar before the sum (`ncclRedOpCreatePreMulSum`).
 *
 * Pass it as `op` to reductions of its communicator, on elements of its dtype. It ends with its communicator at the
 * latest. `dispose()` does not affect queued operations.
 *
 * @example
 * ```ts
 * using weighted = communicator.createPreMulSum(0.25, { dtype: 'f32' })
 * communicator.allReduce(gradients, gradients, { op: weighted, stream })
 * ```
 */
export class PreMulSum extends PublicObject {
  /** Type of the elements. */
  readonly dtype: DType
  readonly #code: ncclRedOp_t
  readonly #live: LiveCommunicator
  #scalar: MemoryLike | undefined
  #disposed = false
  readonly #child: Child

  /** @internal */
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** False for an object that only has the prototype. */
  static override [Symbol.hasInstance](value: unknown): value is PreMulSum {
    return typeof value === 'object' && value !== null && #code in value
  }

  /** @internal */
  constructor(live: LiveCommunicator, code: ncclRedOp_t, dtype: DType, scalar: MemoryLike | undefined) {
    requireMade(dtype, 'PreMulSum', 'Communicator.createPreMulSum', 'string')
    super()
    this.dtype = dtype
    this.#live = live
    this.#code = code
    this.#scalar = scalar
    this.#child = {
      release: async () => this.dispose(),
      forget: () => this.#end(),
    }
    addChild(live, this.#child)
  }

  /** Memory of the scalar, while operations may read it; undefined for a number. */
  get scalar(): MemoryLike | undefined {
    return this.#scalar
  }

  /** Whether it was disposed of, or its communicator has ended. */
  get disposed(): boolean {
    return this.#disposed
  }

  /** @internal The `ncclRedOp_t`, checked for an operation of `dtype` on a communicator. */
  _codeFor(live: LiveCommunicator, dtype: DType, api: string): ncclRedOp_t {
    if (this.#disposed) throw new DisposedError({ object: 'PreMulSum', operation: api })
    if (live !== this.#live) throw new TypeError(`${api}: op must be made by this communicator, not by another one`)
    if (dtype !== this.dtype) throw new TypeError(`${api}: op must be for elements of ${dtype}, not of ${this.dtype}`)
    return this.#code
  }

  /** Destroys the operation (`ncclRedOpDestroy`). Idempotent. @throws StatusError if NCCL refuses. */
  dispose(): void {
    if (this.#disposed) return
    this.#end()
    const { handle } = this.#live
    const destroy = (): void => checkNccl(ncclRedOpDestroy(this.#code, handle), 'ncclRedOpDestroy', handle)
    // Collected operations of groupOffThread still need it.
    if (!afterCollected(this.#live, destroy)) destroy()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  get [Symbol.toStringTag](): string {
    return 'PreMulSum'
  }

  override [inspectKey](): string {
    return inspectLine('PreMulSum', { dtype: this.dtype, disposed: this.#disposed || undefined })
  }

  #end(): void {
    this.#disposed = true
    this.#scalar = undefined
    removeChild(this.#live, this.#child)
  }
}

/** Returns the memory that a user-defined `op` reads whenever it runs. */
export function scalarOf(op: unknown): MemoryLike | undefined {
  return isInstance<PreMulSum>(op, PreMulSum as never) ? op.scalar : undefined
}

const preMulSumKeys: OptionKeys<PreMulSumOptions> = { dtype: true }

export function createPreMulSum(
  live: LiveCommunicator,
  scalar: number | bigint | MemoryLike,
  options: PreMulSumOptions,
): PreMulSum {
  const api = 'Communicator.createPreMulSum'
  requireOptions(options, api, preMulSumKeys)
  requireIdle(live, api)
  if (isMemoryLike(scalar)) {
    const range = memoryAt(scalar, live, api, 'scalar', false)
    const wire = scalarType(options.dtype ?? range.dtype, range, api)
    checkRoom(range, 1, wire, api, 'scalar')
    return create(live, range.address, ncclScalarResidence_t.ncclScalarDevice, wire, scalar, api)
  }
  if (typeof scalar !== 'number' && typeof scalar !== 'bigint') {
    throw wrongType(api, 'scalar', "a number, a bigint or memory of the communicator's device", scalar)
  }
  const wire = scalarType(options.dtype, undefined, api)
  const type = reducible(wire, api)
  const cell = new Uint8Array(8)
  const bits = encodeArray(wire.dtype, [scalar as never])
  cell.set(new Uint8Array(bits.buffer, bits.byteOffset, bits.byteLength))
  return create(live, cell, ncclScalarResidence_t.ncclScalarHostImmediate, { ...wire, code: type }, undefined, api)
}

function create(
  live: LiveCommunicator,
  scalar: bigint | Uint8Array,
  residence: ncclScalarResidence_t,
  wire: WireType,
  keep: MemoryLike | undefined,
  api: string,
): PreMulSum {
  const type: ncclDataType_t = reducible(wire, api)
  const out = new Int32Array(1)
  callNow(live, 'ncclRedOpCreatePreMulSum', () => ncclRedOpCreatePreMulSum(out, scalar, type, residence, live.handle))
  return new PreMulSum(live, (out[0] ?? 0) as ncclRedOp_t, wire.dtype, keep)
}

function scalarType(named: DType | undefined, range: MemoryRange | undefined, api: string): WireType {
  const dtype = requireOneOf(named, api, 'dtype', dtypes)
  if (range?.dtype !== undefined && range.dtype !== dtype) {
    throw new TypeError(`${api}: scalar must be memory of ${dtype}, not of ${range.dtype}`)
  }
  const info = dtypeInfo(dtype)
  return { dtype, bytes: info.bytes, code: info.ncclCode }
}
