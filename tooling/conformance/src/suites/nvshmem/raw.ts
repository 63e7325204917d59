import * as library from '@shoal/nvshmem-sys'
import type { DType } from '@shoal/types'
import type { Random } from '../../support/random.js'
import { collective } from './collectives.js'
import type { Pe } from './pe.js'
import { atomic, getElement, putElement, waitUntil } from './single.js'
import { get, getStrided, put, putSignal, putStrided, type Steps } from './transfers.js'
import type { Atomic, Trial } from './trial.js'

/** One function of the library, called with C's arguments on every PE. */
export interface RawTrial {
  readonly kind: 'raw'
  readonly name: string
  readonly count: number
  readonly seed: number
}

/** C's names of types, and the dtypes with the same layout. */
const types: { readonly [name: string]: DType } = {
  half: 'f16',
  bfloat16: 'bf16',
  float: 'f32',
  double: 'f64',
  char: 'i8',
  schar: 'i8',
  short: 'i16',
  int: 'i32',
  long: 'i64',
  longlong: 'i64',
  ptrdiff: 'i64',
  uchar: 'u8',
  ushort: 'u16',
  uint: 'u32',
  ulong: 'u64',
  ulonglong: 'u64',
  size: 'u64',
  int8: 'i8',
  int16: 'i16',
  int32: 'i32',
  int64: 'i64',
  uint8: 'u8',
  uint16: 'u16',
  uint32: 'u32',
  uint64: 'u64',
  // These functions know only the size of an element.
  mem: 'u8',
  8: 'u8',
  16: 'u16',
  32: 'u32',
  64: 'u64',
  128: 'complex128',
}

type Argument = number | bigint | null
type Call = (...values: Argument[]) => number | bigint | undefined

const functions = library as unknown as { readonly [name: string]: Call }
const { nvshmemx_cmp_type_t: cmp, nvshmemx_signal_op_t: signalOps } = library

const typed =
  '(half|bfloat16|float|double|s?char|short|int|long|longlong|uchar|ushort|uint|ulong|ulonglong|u?int\\d+|size|ptrdiff)'

interface Form {
  readonly pattern: RegExp
  /** @param parts the groups of the pattern's match, in order */
  make(pe: Pe, call: Call, trial: RawTrial, parts: readonly (string | undefined)[]): Steps
}

const dtypeOf = (name: string | undefined): DType => types[name ?? ''] as DType
const streamOf = (pe: Pe, suffix: string | undefined): readonly Argument[] =>
  suffix === undefined ? [] : [pe.stream.handle]
const wayOf = (nonBlocking: string | undefined, onStream: string | undefined): Trial['way'] =>
  onStream === undefined
    ? nonBlocking === undefined
      ? 'sync'
      : 'nonBlocking'
    : nonBlocking === undefined
      ? 'stream'
      : 'nonBlockingStream'

/** Throws if the status is not 0. */
function succeed(status: number | bigint | undefined, name: string): void {
  if (status !== 0) throw new Error(`${name} gave ${status}`)
}

function transfer(
  pe: Pe,
  call: Call,
  { count, seed }: RawTrial,
  type: string | undefined,
  direction: string | undefined,
  nonBlocking: string | undefined,
  onStream: string | undefined,
): Steps {
  const common = { dtype: dtypeOf(type), count, seed, way: wayOf(nonBlocking, onStream), local: 'device' } as const
  const run = (target: bigint, source: bigint, other: number): void =>
    void call(target, source, count, other, ...streamOf(pe, onStream))
  return direction === 'put' ? put(pe, { ...common, kind: 'put' }, run) : get(pe, { ...common, kind: 'get' }, run)
}

function stridedTransfer(
  pe: Pe,
  call: Call,
  { count, seed }: RawTrial,
  type: string | undefined,
  direction: string | undefined,
  onStream: string | undefined,
): Steps {
  const [targetStride, sourceStride] = [1 + (seed % 4), 1 + (Math.floor(seed / 4) % 4)]
  const way = wayOf(undefined, onStream)
  const common = { dtype: dtypeOf(type), count, seed, way, local: 'device', targetStride, sourceStride } as const
  const run = (target: bigint, source: bigint, other: number): void =>
    void call(target, source, targetStride, sourceStride, count, other, ...streamOf(pe, onStream))
  return direction === 'put'
    ? putStrided(pe, { ...common, kind: 'putStrided' }, run)
    : getStrided(pe, { ...common, kind: 'getStrided' }, run)
}

function signalledTransfer(
  pe: Pe,
  call: Call,
  { count, seed }: RawTrial,
  type: string | undefined,
  nonBlocking: string | undefined,
): Steps {
  const signalOp = seed % 2 === 0 ? 'set' : 'add'
  const op = signalOp === 'set' ? signalOps.NVSHMEM_SIGNAL_SET : signalOps.NVSHMEM_SIGNAL_ADD
  const way = wayOf(nonBlocking, 'on_stream')
  return putSignal(
    pe,
    { kind: 'putSignal', dtype: dtypeOf(type), count, seed, way, signalOp },
    (target, source, signal, value, other) =>
      void call(target, source, count, signal, value, op, other, pe.stream.handle),
  )
}

function moved(
  pe: Pe,
  call: Call,
  { name, count, seed }: RawTrial,
  type: string | undefined,
  family: string | undefined,
  onStream: string | undefined,
): Steps {
  const kind = family === 'alltoall' ? 'allToAll' : (family as 'broadcast' | 'fcollect')
  const rooted = (root: number): readonly Argument[] => (kind === 'broadcast' ? [root] : [])
  return collective(
    pe,
    { kind, dtype: dtypeOf(type), count, seed, way: wayOf(undefined, onStream), team: 'world', inPlace: false },
    (team, target, source, root) =>
      succeed(call(team, target, source, count, ...rooted(root), ...streamOf(pe, onStream)), name),
  )
}

const atomicNames: { readonly [name: string]: Atomic } = {
  fetch: 'fetch',
  set: 'set',
  swap: 'swap',
  compare_swap: 'compareSwap',
  inc: 'increment',
  fetch_inc: 'fetchIncrement',
  add: 'add',
  fetch_add: 'fetchAdd',
  and: 'and',
  fetch_and: 'fetchAnd',
  or: 'or',
  fetch_or: 'fetchOr',
  xor: 'xor',
  fetch_xor: 'fetchXor',
}

const comparisons = {
  '==': cmp.NVSHMEM_CMP_EQ,
  '!=': cmp.NVSHMEM_CMP_NE,
  '>': cmp.NVSHMEM_CMP_GT,
  '>=': cmp.NVSHMEM_CMP_GE,
  '<': cmp.NVSHMEM_CMP_LT,
  '<=': cmp.NVSHMEM_CMP_LE,
} as const

const forms: readonly Form[] = [
  {
    pattern: new RegExp(`^nvshmemx?_${typed}_(put|get)(_nbi)?(_on_stream)?$`),
    make: (pe, call, trial, [type, direction, nbi, onStream]) =>
      transfer(pe, call, trial, type, direction, nbi, onStream),
  },
  {
    pattern: /^nvshmemx?_(put|get)(mem|8|16|32|64|128)(_nbi)?(_on_stream)?$/,
    make: (pe, call, trial, [direction, size, nbi, onStream]) =>
      transfer(pe, call, trial, size, direction, nbi, onStream),
  },
  {
    pattern: new RegExp(`^nvshmemx?_${typed}_i(put|get)(_on_stream)?$`),
    make: (pe, call, trial, [type, direction, onStream]) => stridedTransfer(pe, call, trial, type, direction, onStream),
  },
  {
    pattern: /^nvshmemx?_i(put|get)(8|16|32|64|128)(_on_stream)?$/,
    make: (pe, call, trial, [direction, size, onStream]) => stridedTransfer(pe, call, trial, size, direction, onStream),
  },
  {
    pattern: new RegExp(`^nvshmemx?_${typed}_(p|g)(_on_stream)?$`),
    make(pe, call, { count, seed }, [type, direction, onStream]) {
      const common = { dtype: dtypeOf(type), count, seed, way: wayOf(undefined, onStream) }
      const run = (address: bigint, values: readonly Argument[], other: number) =>
        call(address, ...values, other, ...streamOf(pe, onStream))
      return direction === 'p'
        ? putElement(pe, { ...common, kind: 'putElement' }, run)
        : getElement(pe, { ...common, kind: 'getElement' }, run)
    },
  },
  {
    pattern: new RegExp(`^nvshmemx_${typed}_put_signal(_nbi)?_on_stream$`),
    make: (pe, call, trial, [type, nbi]) => signalledTransfer(pe, call, trial, type, nbi),
  },
  {
    pattern: /^nvshmemx_put(mem|8|16|32|64|128)_signal(_nbi)?_on_stream$/,
    make: (pe, call, trial, [size, nbi]) => signalledTransfer(pe, call, trial, size, nbi),
  },
  {
    pattern: new RegExp(`^nvshmemx?_${typed}_(broadcast|fcollect|alltoall)(_on_stream)?$`),
    make: (pe, call, trial, [type, family, onStream]) => moved(pe, call, trial, type, family, onStream),
  },
  {
    pattern: /^nvshmemx?_(broadcast|fcollect|alltoall)mem(_on_stream)?$/,
    make: (pe, call, trial, [family, onStream]) => moved(pe, call, trial, 'mem', family, onStream),
  },
  {
    pattern: new RegExp(`^nvshmemx?_${typed}_(sum|prod|min|max|and|or|xor)_reduce(scatter)?(_on_stream)?$`),
    make(pe, call, { name, count, seed }, [type, op, scatter, onStream]) {
      const way = wayOf(undefined, onStream)
      const common = { dtype: dtypeOf(type), count, seed, way, team: 'world', inPlace: false } as const
      const kind = scatter === undefined ? 'reduce' : 'reduceScatter'
      return collective(pe, { ...common, kind, op: op as 'sum' }, (team, target, source) =>
        succeed(call(team, target, source, count, ...streamOf(pe, onStream)), name),
      )
    },
  },
  {
    pattern: new RegExp(`^nvshmem_${typed}_atomic_(\\w+)$`),
    make: (pe, call, { seed }, [type, name]) =>
      atomic(
        pe,
        {
          kind: 'atomic',
          dtype: dtypeOf(type),
          count: 64,
          seed,
          way: 'sync',
          atomic: atomicNames[name ?? ''] as Atomic,
        },
        (address, values, other) => call(address, ...values, other),
      ),
  },
  {
    pattern: new RegExp(`^nvshmemx_${typed}_wait_until(_all)?(_vector)?_on_stream$`),
    make(pe, call, { seed }, [type, all, vector]) {
      const names = Object.keys(comparisons) as (keyof typeof comparisons)[]
      const comparison = names[seed % names.length] as keyof typeof comparisons
      const kind = all === undefined ? 'waitUntil' : vector === undefined ? 'waitUntilAll' : 'waitUntilAllVector'
      const trial = { kind, dtype: dtypeOf(type), count: 7, seed, way: 'stream', comparison } as const
      const code = comparisons[comparison]
      return waitUntil(pe, trial, (start, count, ignore, against) => {
        if (kind === 'waitUntil') call(start, code, against, pe.stream.handle)
        else call(start, count, ignore, code, against, pe.stream.handle)
      })
    },
  },
]

function formOf(name: string): { readonly form: Form; readonly parts: readonly (string | undefined)[] } | undefined {
  for (const form of forms) {
    const found = form.pattern.exec(name)
    if (found !== null) return { form, parts: found.slice(1) }
  }
  return undefined
}

/** Returns the functions of the library that exist once for each type, in random order. */
export function rawTrials(random: Random): RawTrial[] {
  const names = Object.keys(functions).filter((name) => typeof functions[name] === 'function' && formOf(name))
  return random.shuffled(
    names.map((name) => ({ kind: 'raw', name, count: 2 * random.integer(1, 200) + 1, seed: random.word() })),
  )
}

export function raw(pe: Pe, trial: RawTrial): Steps {
  const found = formOf(trial.name)
  const call = functions[trial.name]
  if (found === undefined || call === undefined) throw new Error(`there is no function ${trial.name}`)
  const context = pe.device.primaryContext
  return found.form.make(pe, (...values) => context.run(() => call(...values)), trial, found.parts)
}
