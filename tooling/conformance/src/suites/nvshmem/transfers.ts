import type { DeviceBuffer } from '@shoal/driver'
import type { SymmetricBuffer } from '@shoal/nvshmem'
import { type DType, dtypeInfo, type StorageArray } from '@shoal/types'
import { difference } from '../../support/reduction/reference.js'
import { bytesOf, type Values, valuesOf } from '../../support/reduction/values.js'
import { arrayOf, elementsIn, localElements, type Pe, readBack, reset, untouched } from './pe.js'
import type { Local, Trial } from './trial.js'

/** The steps of each PE in one trial. All PEs wait for each other between the steps. */
export interface Steps {
  /** Runs before other PEs may use this PE's memory. */
  prepare(): void
  /** Runs the operation. It is complete for this PE when it resolves. */
  act(): Promise<void>
  /** Returns the fault in the result, after all PEs have acted. */
  check(): string | undefined
}

/** A function of the library that replaces the safe package's. It takes addresses and the other PE. */
export type Transfer = (target: bigint, source: bigint, pe: number) => void

type Of<K extends Trial['kind']> = Extract<Trial, { readonly kind: K }>

/** Returns the PE that this one uses, and the PE that uses this one. */
export function partners(pe: Pe, seed: number): { readonly to: number; readonly from: number } {
  const { pe: own, peCount } = pe.session
  const distance = seed % peCount
  return { to: (own + distance) % peCount, from: (own + peCount - distance) % peCount }
}

export function valuesFor(trial: Trial, pe: number): Values {
  return valuesOf({ dtype: trial.dtype, op: undefined, seed: trial.seed }, pe, 1)
}

/** Returns the first elements of a repeating sequence. */
export function repeated({ bytes }: Values, length: number): Uint8Array {
  const result = new Uint8Array(length)
  for (let at = 0; at < length; at += bytes.length) {
    result.set(bytes.subarray(0, Math.min(bytes.length, length - at)), at)
  }
  return result
}

export function sameAs(dtype: DType, got: Uint8Array, values: Values, start = 0): string | undefined {
  return difference(dtype, got, { kind: 'exact', bytes: values.bytes }, start)
}

/** The local side of a transfer: an array, device memory, or symmetric memory that no other PE uses here. */
class LocalSide {
  readonly #pe: Pe
  readonly #dtype: DType
  readonly #count: number
  readonly #kind: Local
  #array: StorageArray | undefined

  constructor(pe: Pe, dtype: DType, count: number, kind: Local) {
    this.#pe = pe
    this.#dtype = dtype
    this.#count = count
    this.#kind = kind
  }

  fill(bytes: Uint8Array | undefined): void {
    if (this.#kind === 'array') {
      const length = this.#count * dtypeInfo(this.#dtype).bytes
      this.#array = arrayOf(this.#dtype, bytes ?? new Uint8Array(length).fill(untouched))
    } else if (this.#kind === 'device') reset(this.#pe.local, this.#dtype, this.#count, bytes)
    else reset(this.#pe.source, this.#dtype, this.#count, bytes)
  }

  get operand(): StorageArray | DeviceBuffer | SymmetricBuffer {
    if (this.#array !== undefined) return this.#array
    return this.memory
  }

  /** @throws TypeError for an array, because it stays in place only while the call is awaited */
  get memory(): DeviceBuffer | SymmetricBuffer {
    if (this.#kind === 'device') return localElements(this.#pe.local, this.#dtype, this.#count)
    if (this.#kind === 'symmetric') return elementsIn(this.#pe.source, this.#dtype, this.#count)
    throw new TypeError('an array has no address')
  }

  read(): Uint8Array {
    if (this.#array !== undefined) return bytesOf(this.#array)
    return readBack(this.#kind === 'device' ? this.#pe.local : this.#pe.source, this.#dtype, this.#count)
  }
}

async function completed(pe: Pe, way: Trial['way']): Promise<void> {
  const { session, stream } = pe
  if (way === 'nonBlockingStream') await session.quietOnStream({ stream })
  if (way === 'stream' || way === 'nonBlockingStream') await stream.synchronize({ timeout: 30_000 })
  // After this, puts have arrived, and calls that only started work are complete.
  await session.quiet({ timeout: 30_000 })
}

export function put(pe: Pe, trial: Of<'put'>, call?: Transfer): Steps {
  const { session, stream } = pe
  const { dtype, count, way, local, seed } = trial
  const { to, from } = partners(pe, seed)
  const side = new LocalSide(pe, dtype, count, local)
  return {
    prepare() {
      reset(pe.target, dtype, count)
      side.fill(repeated(valuesFor(trial, session.pe), count * dtypeInfo(dtype).bytes))
    },
    async act() {
      const target = elementsIn(pe.target, dtype, count)
      if (call !== undefined) call(target.address, side.memory.address, to)
      else if (way === 'wait') await session.put(target, side.operand, { pe: to })
      else if (way === 'sync') session.putSync(target, side.operand, { pe: to, count })
      else if (way === 'nonBlocking') await session.putNonBlocking(target, side.memory, { pe: to })
      else if (way === 'stream') await session.putOnStream(target, side.memory, { pe: to, stream })
      else await session.putNonBlockingOnStream(target, side.memory, { pe: to, stream, count })
      await completed(pe, way)
    },
    check: () => sameAs(dtype, readBack(pe.target, dtype, count), valuesFor(trial, from)),
  }
}

export function get(pe: Pe, trial: Of<'get'>, call?: Transfer): Steps {
  const { session, stream } = pe
  const { dtype, count, way, local, seed } = trial
  const { to } = partners(pe, seed)
  const side = new LocalSide(pe, dtype, count, local)
  return {
    prepare() {
      reset(pe.target, dtype, count, repeated(valuesFor(trial, session.pe), count * dtypeInfo(dtype).bytes))
      side.fill(undefined)
    },
    async act() {
      const source = elementsIn(pe.target, dtype, count)
      if (call !== undefined) call(side.memory.address, source.address, to)
      else if (way === 'wait') await session.get(side.operand, source, { pe: to })
      else if (way === 'sync') session.getSync(side.operand, source, { pe: to, count })
      else if (way === 'nonBlocking') await session.getNonBlocking(side.memory, source, { pe: to })
      else if (way === 'stream') await session.getOnStream(side.memory, source, { pe: to, stream })
      else await session.getNonBlockingOnStream(side.memory, source, { pe: to, stream, count })
      await completed(pe, way)
    },
    check: () => sameAs(dtype, side.read(), valuesFor(trial, to)),
  }
}

/** Returns the length of the range that `count` elements with this stride cover. */
const span = (count: number, stride: number): number => (count - 1) * stride + 1

/** Returns the expected target: source elements in strided order at strided places, and nothing between them. */
function strided(values: Values, size: number, count: number, targetStride: number, sourceStride: number): Uint8Array {
  const source = repeated(values, span(count, sourceStride) * size)
  const target = new Uint8Array(span(count, targetStride) * size).fill(untouched)
  for (let index = 0; index < count; index += 1) {
    const at = index * sourceStride * size
    target.set(source.subarray(at, at + size), index * targetStride * size)
  }
  return target
}

function firstDifference(got: Uint8Array, want: Uint8Array, size: number): string | undefined {
  if (Buffer.compare(got, want) === 0) return undefined
  const at = Math.floor(got.findIndex((byte, index) => byte !== want[index]) / size)
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes.subarray(at * size, (at + 1) * size)).toString('hex')
  return `element ${at} of ${got.length / size} is 0x${hex(got)}, should be 0x${hex(want)}`
}

export function putStrided(pe: Pe, trial: Of<'putStrided'>, call?: Transfer): Steps {
  const { session, stream } = pe
  const { dtype, count, way, local, seed, targetStride, sourceStride } = trial
  const { to, from } = partners(pe, seed)
  const size = dtypeInfo(dtype).bytes
  const [sourceSpan, targetSpan] = [span(count, sourceStride), span(count, targetStride)]
  const side = new LocalSide(pe, dtype, sourceSpan, local)
  return {
    prepare() {
      reset(pe.target, dtype, targetSpan)
      side.fill(repeated(valuesFor(trial, session.pe), sourceSpan * size))
    },
    async act() {
      const target = elementsIn(pe.target, dtype, targetSpan)
      const options = { pe: to, count, targetStride, sourceStride }
      if (call !== undefined) call(target.address, side.memory.address, to)
      else if (way === 'wait') await session.putStrided(target, side.operand, options)
      else if (way === 'sync') session.putStridedSync(target, side.operand, options)
      else await session.putStridedOnStream(target, side.memory, { ...options, stream })
      await completed(pe, way)
    },
    check() {
      const want = strided(valuesFor(trial, from), size, count, targetStride, sourceStride)
      return firstDifference(readBack(pe.target, dtype, targetSpan), want, size)
    },
  }
}

export function getStrided(pe: Pe, trial: Of<'getStrided'>, call?: Transfer): Steps {
  const { session, stream } = pe
  const { dtype, count, way, local, seed, targetStride, sourceStride } = trial
  const { to } = partners(pe, seed)
  const size = dtypeInfo(dtype).bytes
  const [sourceSpan, targetSpan] = [span(count, sourceStride), span(count, targetStride)]
  const side = new LocalSide(pe, dtype, targetSpan, local)
  return {
    prepare() {
      reset(pe.target, dtype, sourceSpan, repeated(valuesFor(trial, session.pe), sourceSpan * size))
      side.fill(undefined)
    },
    async act() {
      const source = elementsIn(pe.target, dtype, sourceSpan)
      const options = { pe: to, count, targetStride, sourceStride }
      if (call !== undefined) call(side.memory.address, source.address, to)
      else if (way === 'wait') await session.getStrided(side.operand, source, options)
      else if (way === 'sync') session.getStridedSync(side.operand, source, options)
      else await session.getStridedOnStream(side.memory, source, { ...options, stream })
      await completed(pe, way)
    },
    check() {
      const want = strided(valuesFor(trial, to), size, count, targetStride, sourceStride)
      return firstDifference(side.read(), want, size)
    },
  }
}

/** A transfer that also sets a signal of the other PE, for {@link putSignal}. */
export type SignalledTransfer = (target: bigint, source: bigint, signal: bigint, value: bigint, pe: number) => void

export function putSignal(pe: Pe, trial: Of<'putSignal'>, call?: SignalledTransfer): Steps {
  const { session, stream, signals } = pe
  const { dtype, count, way, seed, signalOp } = trial
  const { to, from } = partners(pe, seed)
  const side = new LocalSide(pe, dtype, count, seed % 2 === 0 ? 'device' : 'symmetric')
  const first = 5n
  const value = 37n
  const last = signalOp === 'set' ? value : first + value
  return {
    prepare() {
      reset(pe.target, dtype, count)
      side.fill(repeated(valuesFor(trial, session.pe), count * dtypeInfo(dtype).bytes))
      signals.fillSync(first)
    },
    async act() {
      const target = elementsIn(pe.target, dtype, count)
      const options = { pe: to, stream, signal: signals, signalIndex: session.pe, value, op: signalOp }
      const own = signals.slice(session.pe).address
      if (call !== undefined) call(target.address, side.memory.address, own, value, to)
      else if (way === 'stream') await session.putSignalOnStream(target, side.memory, options)
      else await session.putSignalNonBlockingOnStream(target, side.memory, { ...options, count })
      // A PE that sees the signal must see the elements, so there is no barrier before the read.
      await session.signals.waitForSignalOnStream(signals, { index: from, comparison: '==', value: last, stream })
      await stream.synchronize({ timeout: 30_000 })
      const wrong = sameAs(dtype, readBack(pe.target, dtype, count), valuesFor(trial, from))
      if (wrong !== undefined) throw new Error(`when the signal came: ${wrong}`)
      await completed(pe, way)
    },
    check() {
      const signal = session.signals.fetchSync(signals, { index: from })
      return signal === last ? undefined : `the signal is ${signal}, should be ${last}`
    },
  }
}
