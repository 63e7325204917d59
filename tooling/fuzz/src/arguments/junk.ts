import type { Kind, Parameter } from './contract.js'

/**
 * Error thrown by getters and traps of junk. It stands for an error of the user's program, which may reach the caller
 * unchanged.
 */
export class JunkError extends Error {
  override readonly name = 'JunkError'
}

/** One kind of wrong argument. */
export interface JunkKind {
  readonly name: string
  /**
   * Kind that a check sees, roughly as `typeof` reports it. A parameter of this kind may accept the value. No parameter
   * accepts `'never'`.
   */
  readonly kind: Kind | 'never'
  make(parameter: Parameter): unknown
}

const fail = (): never => {
  throw new JunkError('junk')
}

/** A typed array of a class that reports a false length. */
class FalseLengthArray extends Float32Array {
  override get length(): number {
    return 2 ** 20
  }
  override get byteLength(): number {
    return 2 ** 22
  }
  override get byteOffset(): number {
    return 64
  }
}

class SomeOptions {
  readonly stream = undefined
  readonly timeout = 5
}

function detached(): ArrayBuffer {
  const buffer = new ArrayBuffer(16)
  structuredClone(buffer, { transfer: [buffer] })
  return buffer
}

function viewOfDetached(): Float32Array {
  const view = new Float32Array(4)
  structuredClone(view.buffer, { transfer: [view.buffer] })
  return view
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** Returns an object whose getters throw, for the keys of the options and for the protocols. */
function throwing(parameter: Parameter): object {
  const names: PropertyKey[] = parameter.options.map(({ name }) => name)
  if (names.length === 0) names.push('length', 'stream', 'timeout', 'then')
  for (const protocol of ['cuda.memory', 'cuda.stream', 'cuda.device']) names.push(Symbol.for(protocol))
  return Object.defineProperties({}, Object.fromEntries(names.map((name) => [name, { get: fail, enumerable: true }])))
}

const traps: ProxyHandler<object> = Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((trap) => [trap, fail]))

const aborted = AbortSignal.abort(new JunkError('aborted'))

export const junkKinds: readonly JunkKind[] = [
  { name: 'undefined', kind: 'undefined', make: () => undefined },
  { name: 'null', kind: 'null', make: () => null },
  { name: 'true', kind: 'boolean', make: () => true },
  { name: 'NaN', kind: 'never', make: () => Number.NaN },
  { name: '-0', kind: 'number', make: () => -0 },
  { name: '-1', kind: 'never', make: () => -1 },
  { name: '0.5', kind: 'never', make: () => 0.5 },
  { name: '2**53', kind: 'never', make: () => 2 ** 53 },
  { name: 'Infinity', kind: 'never', make: () => Number.POSITIVE_INFINITY },
  { name: 'a huge bigint', kind: 'never', make: () => 2n ** 70n },
  { name: 'a negative bigint', kind: 'never', make: () => -1n },
  { name: "''", kind: 'never', make: () => '' },
  { name: "'x'", kind: 'string', make: () => 'x' },
  { name: 'text with NUL', kind: 'never', make: () => 'x\0y' },
  { name: 'a symbol', kind: 'symbol', make: () => Symbol('junk') },
  { name: 'an object without prototype', kind: 'empty object', make: () => Object.create(null) as object },
  { name: 'a frozen object', kind: 'empty object', make: () => Object.freeze({}) },
  { name: 'an unknown key', kind: 'never', make: () => ({ nonsense: 1 }) },
  { name: 'throwing getters', kind: 'empty object', make: throwing },
  { name: 'a throwing proxy', kind: 'never', make: () => new Proxy({}, traps) },
  { name: 'a revoked proxy', kind: 'never', make: revoked },
  {
    name: 'an object that is no text',
    kind: 'never',
    make: () => ({ [Symbol.toPrimitive]: fail, toString: fail, valueOf: fail }),
  },
  { name: 'an array', kind: 'array', make: () => [] },
  { name: 'a sparse array', kind: 'never', make: () => new Array(3) },
  { name: 'an array of junk', kind: 'never', make: () => [Symbol('junk'), null, {}] },
  { name: 'a function', kind: 'function', make: () => () => undefined },
  { name: 'a class', kind: 'function', make: () => class Nothing {} },
  { name: 'a Date', kind: 'never', make: () => new Date(0) },
  { name: 'a Map', kind: 'never', make: () => new Map([['stream', 1]]) },
  { name: 'a RegExp', kind: 'never', make: () => /junk/ },
  { name: 'an Error', kind: 'never', make: () => new JunkError('argument') },
  { name: 'a String object', kind: 'never', make: () => Object('f32') as object },
  { name: 'an ArrayBuffer', kind: 'never', make: () => new ArrayBuffer(3) },
  { name: 'a detached ArrayBuffer', kind: 'never', make: detached },
  { name: 'a SharedArrayBuffer', kind: 'never', make: () => new SharedArrayBuffer(16) },
  { name: 'a view of a detached buffer', kind: 'never', make: viewOfDetached },
  { name: 'an array of bytes', kind: 'never', make: () => new Uint8Array(3) },
  { name: 'an array of 64-bit integers', kind: 'never', make: () => new BigInt64Array(3) },
  { name: 'a DataView', kind: 'never', make: () => new DataView(new ArrayBuffer(3)) },
  { name: 'an array of a false length', kind: 'never', make: () => new FalseLengthArray(2) },
  { name: 'an instance of a class', kind: 'never', make: () => new SomeOptions() },
  {
    name: 'a thenable',
    kind: 'never',
    make: () => Object.fromEntries([['then', (resolve: (value: number) => void) => resolve(1)]]),
  },
  { name: 'a promise', kind: 'never', make: () => Promise.resolve(1) },
  { name: 'an aborted signal', kind: 'never', make: () => aborted },
  { name: 'the global object', kind: 'never', make: () => globalThis },
]
