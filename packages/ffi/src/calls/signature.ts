import {
  type OwnedArrayOf,
  outOfRange,
  requireInteger,
  requireKeyOf,
  requireList,
  requireOneOf,
  requireOptions,
  requireText,
  wrongType,
} from '@shoal/types'
import { dropCallContext, maximumArguments, maximumFloats, maximumStructure } from '../addon/block.js'
import type { NativeLibrary } from '../library/nativeLibrary.js'
import { readCString } from '../memory/hostMemory.js'
import type { NativeMemory } from '../memory/nativeMemory.js'
import {
  type PointerArgument,
  putBool,
  putCString,
  putF32,
  putF64,
  putI8,
  putI16,
  putI32,
  putI64,
  putPointer,
  putSize,
  putU8,
  putU16,
  putU32,
  type SignedArgument,
  type SizeArgument,
} from './arguments.js'
import type { BigResult, NumberResult } from './bind.js'
import { type CallLayout, type LoweredParameter, lowerCall } from './lowering.js'

/** JavaScript type of each kind of parameter. */
export interface ArgumentTypes {
  /** `signed char` */
  i8: number
  /** `unsigned char` */
  u8: number
  /** `short` */
  i16: number
  /** `unsigned short` */
  u16: number
  /** `int`, and enumerations */
  i32: number
  /** `unsigned int` */
  u32: number
  /** `int64_t`, `long long`: a safe integer or a bigint */
  i64: SignedArgument
  /** `uint64_t`, `unsigned long long`: a safe integer or a bigint */
  u64: SizeArgument
  /** `ptrdiff_t`, `ssize_t` */
  isize: SignedArgument
  /** `size_t` */
  usize: SizeArgument
  /** `float`: the nearest one */
  f32: number
  /** `double` */
  f64: number
  /** `bool` */
  bool: boolean
  /** Any pointer or handle: an address, memory, or `null`. C decides how much memory it uses. */
  ptr: PointerArgument
  /** `const char *`: a string, or a value for `ptr` */
  cstring: string | PointerArgument
}

/** JavaScript type of each kind of result. */
export interface ResultTypes {
  /** `signed char` */
  i8: number
  /** `unsigned char` */
  u8: number
  /** `short` */
  i16: number
  /** `unsigned short` */
  u16: number
  /** `int`, and enumerations */
  i32: number
  /** `unsigned int` */
  u32: number
  /** `int64_t`, `long long` */
  i64: bigint
  /** `uint64_t`, `unsigned long long` */
  u64: bigint
  /** `ptrdiff_t`, `ssize_t` */
  isize: bigint
  /** `size_t` */
  usize: bigint
  /** `float` */
  f32: number
  /** `double` */
  f64: number
  /** `bool` */
  bool: boolean
  /** Any pointer or handle: its address, `0n` for NULL. */
  ptr: bigint
  /** `const char *`: a copy of the text, `null` for NULL */
  cstring: string | null
  /** Nothing */
  void: undefined
  /** `int` that is 0 for success: nothing. The call throws a `StatusError` for another number. */
  status: undefined
}

/** A structure of integers and pointers by value. */
export interface StructByValue {
  /** Name of the parameter, for errors. */
  readonly name?: string
  /** Size in bytes, from 1 to 128. */
  readonly bytes: number
}

/** A parameter of a C function: its kind, with its name in front for errors, such as `'count: usize'`. */
export type Parameter = keyof ArgumentTypes | `${string}: ${keyof ArgumentTypes}` | StructByValue

/** A C function as {@link NativeLibrary.function} takes it. */
export interface Signature<P extends readonly Parameter[], R extends keyof ResultTypes | StructByValue> {
  /** The parameters in order, such as `['target: ptr', 'value: i32']`. */
  readonly parameters: P
  /** Kind of the result. */
  readonly result: R
  /** The library's version that first has this signature, in the library's encoding. Default: any. */
  readonly since?: number
}

type ArgumentOf<P> = P extends keyof ArgumentTypes
  ? ArgumentTypes[P]
  : P extends `${string}: ${infer K extends keyof ArgumentTypes}`
    ? ArgumentTypes[K]
    : ArrayBufferView | NativeMemory

type ResultOf<R> = R extends keyof ResultTypes ? ResultTypes[R] : OwnedArrayOf<'u8'>

/** A C function that takes JavaScript values. */
export type BoundFunction<P extends readonly Parameter[], R extends keyof ResultTypes | StructByValue> = (
  ...values: { -readonly [I in keyof P]: ArgumentOf<P[I]> }
) => ResultOf<R>

/** Writes a value. A switch, because V8 cannot inline functions of a table, which costs 10 ns more per value. */
function put(kind: keyof ArgumentTypes, slot: number, value: unknown, symbol: string, name: string): unknown {
  switch (kind) {
    case 'ptr':
      return putPointer(slot, value as PointerArgument, symbol, name)
    case 'i32':
      return putI32(slot, value as number, symbol, name)
    case 'u64':
    case 'usize':
      return putSize(slot, value as SizeArgument, symbol, name)
    case 'u32':
      return putU32(slot, value as number, symbol, name)
    case 'f32':
      return putF32(slot, value as number, symbol, name)
    case 'f64':
      return putF64(slot, value as number, symbol, name)
    case 'i64':
    case 'isize':
      return putI64(slot, value as SignedArgument, symbol, name)
    case 'cstring':
      return putCString(slot, value as string, symbol, name)
    case 'bool':
      return putBool(slot, value as boolean, symbol, name)
    case 'i8':
      return putI8(slot, value as number, symbol, name)
    case 'u8':
      return putU8(slot, value as number, symbol, name)
    case 'i16':
      return putI16(slot, value as number, symbol, name)
    case 'u16':
      return putU16(slot, value as number, symbol, name)
  }
}

/** The engine's result for each kind, and its conversion. */
const results: {
  readonly [K in keyof ResultTypes]: readonly [
    native: NumberResult | BigResult,
    finish?: (value: never, library: NativeLibrary, symbol: string) => ResultTypes[K],
  ]
} = {
  i8: ['i8'],
  u8: ['u8'],
  i16: ['i16'],
  u16: ['u16'],
  i32: ['i32'],
  u32: ['u32'],
  i64: ['i64'],
  u64: ['u64'],
  isize: ['i64'],
  usize: ['u64'],
  f32: ['f32'],
  f64: ['f64'],
  bool: ['bool', (value: number) => value !== 0],
  ptr: ['pointer'],
  cstring: ['pointer', readCString],
  void: ['void'],
  status: ['i32', throwStatus],
}

const argumentKinds = (Object.keys(results) as (keyof ResultTypes)[]).filter(
  (kind): kind is keyof ArgumentTypes => kind !== 'void' && kind !== 'status',
)

function throwStatus(status: number, library: NativeLibrary, symbol: string): undefined {
  if (status !== 0) throw library._statusError(symbol, status)
}

interface ReadParameter {
  readonly name: string
  /** `undefined` for a structure. */
  readonly kind: keyof ArgumentTypes | undefined
  readonly shape: LoweredParameter
}

const api = 'NativeLibrary.function'

/** Makes the function of {@link NativeLibrary.function}. */
export function bindSignature<P extends readonly Parameter[], R extends keyof ResultTypes | StructByValue>(
  library: NativeLibrary,
  symbol: string,
  signature: Signature<P, R>,
): BoundFunction<P, R> {
  requireText(symbol, api, 'symbol')
  requireOptions<Signature<P, R>>(signature, api, { parameters: true, result: true, since: true }, 'signature')
  const since = requireInteger(signature.since ?? 0, api, 'since', 0)
  const parameters = requireList<Parameter>(signature.parameters, api, 'parameters').map(readParameter)
  const resultBytes = isStruct(signature.result) ? requireBytes(signature.result, 'result') : 0
  const floats = parameters.filter(({ shape }) => shape === 'float').length
  if (floats > maximumFloats) throw outOfRange(api, 'parameters', `at most ${maximumFloats} floats`, floats)
  const layout = lowerCall(
    parameters.map(({ shape }) => shape),
    undefined,
    resultBytes,
  )
  if (layout.slotCount > maximumArguments)
    throw outOfRange(api, 'parameters', `at most ${maximumArguments} words of arguments`, layout.slotCount)
  const bind = binder(library, symbol, since, layout, signature.result)
  const places = parameters.map(({ name, kind }, index) => ({ name, kind, slot: layout.slot(index) }))
  let call: (() => unknown) | undefined
  const bound = (...values: readonly unknown[]): unknown => {
    call ??= bind()
    if (values.length !== places.length) {
      dropCallContext()
      throw wrongType(symbol, 'the number of arguments', String(places.length), values.length)
    }
    for (let index = 0; index < places.length; index += 1) {
      const { name, kind, slot } = places[index] as (typeof places)[number]
      if (kind === undefined) layout.putStruct(index, values[index] as NativeMemory, symbol, name)
      else put(kind, slot, values[index], symbol, name)
    }
    return call()
  }
  return bound as BoundFunction<P, R>
}

function readParameter(given: unknown, index: number): ReadParameter {
  const path = `parameters[${index}]`
  if (isStruct(given)) {
    const { name = `argument ${index + 1}` } = given
    return {
      name: requireText(name, api, `${path}.name`),
      kind: undefined,
      shape: { bytes: requireBytes(given, path) },
    }
  }
  const text = requireText(given, api, path)
  const colon = text.indexOf(': ')
  const kind = requireOneOf(colon < 0 ? text : text.slice(colon + 2), api, path, argumentKinds)
  return {
    name: colon < 0 ? `argument ${index + 1}` : text.slice(0, colon),
    kind,
    shape: kind === 'f32' || kind === 'f64' ? 'float' : 'word',
  }
}

function isStruct(given: unknown): given is StructByValue {
  return typeof given === 'object' && given !== null
}

function requireBytes(given: StructByValue, path: string): number {
  requireOptions<StructByValue>(given, api, { name: true, bytes: true }, path)
  return requireInteger(given.bytes, api, `${path}.bytes`, 1, maximumStructure)
}

/** Returns a function that binds the call, at its first use. */
function binder(
  library: NativeLibrary,
  symbol: string,
  since: number,
  layout: CallLayout,
  result: keyof ResultTypes | StructByValue,
): () => () => unknown {
  if (isStruct(result)) {
    return () => {
      const call = library.bindStruct(symbol, since, layout, result.bytes)
      return () => call().slice()
    }
  }
  const [native, finish] = requireKeyOf(result, api, 'result', results)
  return () => {
    const call =
      native === 'i64' || native === 'u64' || native === 'pointer'
        ? library.bindBig(symbol, since, layout, native)
        : library.bind(symbol, since, layout, native)
    return finish === undefined ? call : () => finish(call() as never, library, symbol)
  }
}
