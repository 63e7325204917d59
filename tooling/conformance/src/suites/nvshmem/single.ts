import type { SymmetricBuffer, WaitableDType } from '@shoal/nvshmem'
import { type DType, dtypeInfo, encodeArray, type HostValueOf, type TypedArrayOf } from '@shoal/types'
import { bytesOf, numbersOf, type Values, valuesOf } from '../../support/reduction/values.js'
import { arrayOf, elementsIn, localElements, type Pe, readBack, reset } from './pe.js'
import { partners, repeated, type Steps } from './transfers.js'
import type { Atomic, Trial } from './trial.js'

type Of<K extends Trial['kind']> = Extract<Trial, { readonly kind: K }>
type Num = number | bigint

/** Returns numbers for a PE that the dtype holds exactly, so that results can be compared. */
function numbersFor(trial: Trial, pe: number): Values & { at(index: number): Num } {
  const values = valuesOf({ dtype: trial.dtype, op: 'sum', seed: trial.seed }, pe, 1)
  return { ...values, at: (index) => (values.numbers as ArrayLike<Num>)[index] as Num }
}

function numbersIn(dtype: DType, bytes: Uint8Array): ArrayLike<Num> {
  return numbersOf(dtype, arrayOf(dtype, bytes))
}

function differs(what: string, got: Num | undefined, want: Num): string | undefined {
  return got === want ? undefined : `${what} is ${got}, should be ${want}`
}

/** A function of the library that replaces the safe package's. It takes an address, native values and the other PE. */
export type ElementCall = (address: bigint, values: readonly Num[], pe: number) => Num | undefined

/** Returns a number as C takes it: 16-bit floats by their bits. */
function native(dtype: DType, value: Num): Num {
  return encodeArray(dtype, [value] as HostValueOf<DType>[])[0] as Num
}

/** Converts C's result to a number. */
function fromNative(dtype: DType, value: Num | undefined): Num | undefined {
  if (value === undefined || (dtype !== 'f16' && dtype !== 'bf16')) return value
  return numbersOf(dtype, Uint16Array.of(Number(value)))[0]
}

export function putElement(pe: Pe, trial: Of<'putElement'>, call?: ElementCall): Steps {
  const { session, stream } = pe
  const { dtype, count, way, seed } = trial
  const { to, from } = partners(pe, seed)
  const index = seed % count
  return {
    prepare: () => reset(pe.target, dtype, count, repeated(numbersFor(trial, 100), count * dtypeInfo(dtype).bytes)),
    async act() {
      const target = elementsIn(pe.target, dtype, count)
      const value = numbersFor(trial, session.pe).at(0) as never
      if (call !== undefined) call(target.slice(index).address, [native(dtype, value)], to)
      else if (way === 'wait') await session.putElement(target, value, { pe: to, index })
      else if (way === 'sync') session.putElementSync(target, value, { pe: to, index })
      else await session.putElementOnStream(target, value, { pe: to, index, stream })
      if (way === 'stream') await stream.synchronize({ timeout: 30_000 })
      await session.quiet({ timeout: 30_000 })
    },
    check() {
      const got = numbersIn(dtype, readBack(pe.target, dtype, count))
      const before = numbersFor(trial, 100)
      for (let at = 0; at < count; at += 1) {
        const want = at === index ? numbersFor(trial, from).at(0) : before.at(at)
        const wrong = differs(`element ${at}`, got[at], want)
        if (wrong !== undefined) return wrong
      }
      return undefined
    },
  }
}

export function getElement(pe: Pe, trial: Of<'getElement'>, call?: ElementCall): Steps {
  const { session, stream } = pe
  const { dtype, count, way, seed } = trial
  const { to } = partners(pe, seed)
  const index = seed % count
  let got: Num | undefined
  return {
    prepare() {
      reset(pe.target, dtype, count, repeated(numbersFor(trial, session.pe), count * dtypeInfo(dtype).bytes))
    },
    async act() {
      const source = elementsIn(pe.target, dtype, count)
      if (call !== undefined) got = fromNative(dtype, call(source.slice(index).address, [], to))
      else if (way === 'wait') got = await session.getElement(source, { pe: to, index })
      else if (way === 'sync') got = session.getElementSync(source, { pe: to, index })
      else got = await session.getElementOnStream(source, { pe: to, index, stream })
    },
    check: () => differs('the element', got, numbersFor(trial, to).at(index)),
  }
}

/** Returns a number as its dtype stores it. Integers wrap around. */
function wrapped(dtype: DType, value: Num): Num {
  const { bytes, kind } = dtypeInfo(dtype)
  if (kind === 'float') return value
  const wide = kind === 'uint' ? BigInt.asUintN(8 * bytes, BigInt(value)) : BigInt.asIntN(8 * bytes, BigInt(value))
  return bytes === 8 ? wide : Number(wide)
}

/** Returns the value of an element after an atomic operation. */
function after(atomic: Atomic, dtype: DType, before: Num, value: Num, expected: Num): Num {
  const whole = (combine: (a: bigint, b: bigint) => bigint, other: Num): Num =>
    wrapped(dtype, combine(BigInt(before), BigInt(other)))
  switch (atomic) {
    case 'fetch':
      return before
    case 'set':
    case 'swap':
      return value
    case 'compareSwap':
      return before === expected ? value : before
    case 'increment':
    case 'fetchIncrement':
      return whole((a, b) => a + b, 1)
    case 'add':
    case 'fetchAdd':
      return whole((a, b) => a + b, value)
    case 'and':
    case 'fetchAnd':
      return whole((a, b) => a & b, value)
    case 'or':
    case 'fetchOr':
      return whole((a, b) => a | b, value)
    case 'xor':
    case 'fetchXor':
      return whole((a, b) => a ^ b, value)
  }
}

const withoutResult: readonly Atomic[] = ['set', 'increment', 'add', 'and', 'or', 'xor']

type Call = (target: SymmetricBuffer, ...rest: unknown[]) => unknown

/** Each PE changes its own element in the memory of another PE. */
export function atomic(pe: Pe, trial: Of<'atomic'>, call?: ElementCall): Steps {
  const { session } = pe
  const { dtype, count, way, seed, atomic: name } = trial
  const { to, from } = partners(pe, seed)
  const operand = (caller: number): Num => numbersFor(trial, 200 + caller).at(1)
  const initial = (owner: number, index: number): Num => numbersFor(trial, owner).at(index)
  const expected = (owner: number, caller: number): Num =>
    seed % 3 === 0
      ? wrapped(dtype, BigInt(Math.trunc(Number(initial(owner, caller)) / 2)) + 1n)
      : initial(owner, caller)
  let result: unknown
  return {
    prepare() {
      reset(pe.target, dtype, count, repeated(numbersFor(trial, session.pe), count * dtypeInfo(dtype).bytes))
    },
    async act() {
      const index = session.pe
      const { atomics } = session
      const method = (atomics as unknown as Record<string, Call>)[way === 'sync' ? `${name}Sync` : name] as Call
      const values =
        name === 'compareSwap'
          ? [expected(to, index), operand(index)]
          : name === 'fetch' || name === 'increment' || name === 'fetchIncrement'
            ? []
            : [operand(index)]
      const target = elementsIn(pe.target, dtype, count)
      if (call === undefined) result = await method.call(atomics, target, ...values, { pe: to, index })
      else {
        const natives = values.map((value) => native(dtype, value))
        result = call(target.slice(index).address, natives, to)
      }
      await session.quiet({ timeout: 30_000 })
    },
    check() {
      const before = initial(to, session.pe)
      const wrong = withoutResult.includes(name) ? undefined : differs('what it gave', result as Num, before)
      if (wrong !== undefined) return wrong
      const got = numbersIn(dtype, readBack(pe.target, dtype, count))
      const own = session.pe
      for (let at = 0; at < count; at += 1) {
        const start = initial(own, at)
        const want = at === from ? after(name, dtype, start, operand(from), expected(own, from)) : start
        const different = differs(`element ${at}`, got[at], want)
        if (different !== undefined) return different
      }
      return undefined
    },
  }
}

const rounds = 25

/** All PEs increment one element at the same time. */
export function contended(pe: Pe, trial: Of<'contended'>): Steps {
  const { session } = pe
  const { dtype, seed } = trial
  const owner = seed % session.peCount
  const seen: Num[] = []
  return {
    prepare: () => reset(pe.target, dtype, 1, bytesOf(encoded(dtype, 7))),
    async act() {
      const target = elementsIn(pe.target, dtype, 1) as SymmetricBuffer<'i64'>
      for (let round = 0; round < rounds; round += 1) {
        seen.push(await session.atomics.fetchIncrement(target, { pe: owner }))
      }
    },
    check() {
      for (let at = 1; at < seen.length; at += 1) {
        if ((seen[at] as Num) <= (seen[at - 1] as Num)) return `it gave ${seen[at]} after ${seen[at - 1]}`
      }
      if (session.pe !== owner) return undefined
      const [got] = Array.from(numbersIn(dtype, readBack(pe.target, dtype, 1)))
      return differs('the element', Number(got), 7 + rounds * session.peCount)
    },
  }
}

function encoded<D extends DType>(dtype: D, ...values: number[]): TypedArrayOf<D> {
  const host = dtypeInfo(dtype).bytes === 8 && dtypeInfo(dtype).kind !== 'float' ? values.map(BigInt) : values
  return encodeArray(dtype, host as HostValueOf<D>[])
}

export function signal(pe: Pe, trial: Of<'signal'>): Steps {
  const { session, stream, signals } = pe
  const { to, from } = partners(pe, trial.seed)
  const value = BigInt(trial.seed)
  const last = trial.signalOp === 'set' ? value : value + 11n
  return {
    prepare: () => void signals.fillSync(11n),
    async act() {
      const options = { pe: to, index: session.pe, value, op: trial.signalOp, stream }
      await session.signals.signalOnStream(signals, options)
      await session.signals.waitForSignalOnStream(signals, { index: from, comparison: '==', value: last, stream })
      await stream.synchronize({ timeout: 30_000 })
    },
    check() {
      const got = signals.toArraySync()
      for (const [at, element] of got.entries()) {
        const wrong = differs(`signal ${at}`, element, at === from ? last : 11n)
        if (wrong !== undefined) return wrong
      }
      return undefined
    },
  }
}

/** The first value of an element, and a new value that compares with 5 as the operator asks. */
const changes = {
  '==': [0, 5],
  '!=': [5, 6],
  '>': [5, 6],
  '>=': [4, 5],
  '<': [5, 4],
  '<=': [6, 5],
} as const

/** A function of the library that makes a stream wait. `against` is the value, or the address of the values. */
export type WaitCall = (variables: bigint, count: number, ignore: bigint | null, against: Num) => void

/** Makes a stream wait for variables of this PE that another PE writes. */
export function waitUntil(
  pe: Pe,
  trial: Of<'waitUntil' | 'waitUntilAll' | 'waitUntilAllVector'>,
  call?: WaitCall,
): Steps {
  const { session, stream } = pe
  const { dtype, count, seed, kind, comparison } = trial
  const { to } = partners(pe, seed)
  const [first, last] = changes[comparison]
  // One element that never satisfies the comparison is ignored.
  const ignored = kind === 'waitUntil' || seed % 2 === 0 ? -1 : seed % count
  return {
    prepare() {
      reset(pe.target, dtype, count, bytesOf(encoded(dtype, ...new Array<number>(count).fill(first))))
      if (kind === 'waitUntilAllVector') {
        reset(pe.local, dtype, count, bytesOf(encoded(dtype, ...new Array<number>(count).fill(5))))
      }
      const skips = new Int32Array(count)
      if (ignored >= 0) skips[ignored] = 1
      pe.ignore.slice(0, count).copyFromSync(skips)
    },
    async act() {
      const variables = elementsIn(pe.target, dtype, count) as SymmetricBuffer<WaitableDType>
      const value = encodedValue(dtype, 5) as never
      const ignore = ignored < 0 ? {} : { ignore: pe.ignore.slice(0, count) }
      const { signals } = session
      if (call !== undefined) {
        const start = kind === 'waitUntil' ? variables.slice(3).address : variables.address
        const against = kind === 'waitUntilAllVector' ? localElements(pe.local, dtype, count).address : value
        call(start, count, ignored < 0 ? null : pe.ignore.address, against)
      } else if (kind === 'waitUntil')
        await signals.waitUntilOnStream(variables, { index: 3, comparison, value, stream })
      else if (kind === 'waitUntilAll') {
        await signals.waitUntilAllOnStream(variables, { comparison, value, stream, ...ignore })
      } else {
        const values = localElements(pe.local, dtype, count)
        await signals.waitUntilAllVectorOnStream(variables, { comparison, values, stream, ...ignore })
      }
      for (let index = 0; index < count; index += 1) {
        if (index === ignored) continue
        await session.putElement(variables, encodedValue(dtype, last) as never, { pe: to, index })
      }
      await session.quiet({ timeout: 30_000 })
      await stream.synchronize({ timeout: 30_000 })
    },
    check() {
      const got = numbersIn(dtype, readBack(pe.target, dtype, count))
      for (let at = 0; at < count; at += 1) {
        const want = at === ignored ? first : last
        const wrong = differs(`element ${at}`, Number(got[at]), want)
        if (wrong !== undefined) return wrong
      }
      return undefined
    },
  }
}

function encodedValue(dtype: DType, value: number): Num {
  return dtypeInfo(dtype).bytes === 8 ? BigInt(value) : value
}
