import { describeValue } from '../describeValue.js'

const maxAddress = (1n << 64n) - 1n

/** Refuses what is not an object of protocol version 0. */
export function checkVersion(answer: unknown, protocol: string): void {
  if (typeof answer === 'function') {
    throw new TypeError(`[Symbol.for('${protocol}')] must be a property or getter that gives the data, not a method`)
  }
  if (typeof answer !== 'object' || answer === null) {
    throw new TypeError(`[Symbol.for('${protocol}')] must give an object, got ${describeValue(answer)}`)
  }
  const { version } = answer as { version?: unknown }
  if (version !== 0) {
    throw new TypeError(`version ${describeValue(version)} of the ${protocol} protocol is not known here, only 0`)
  }
}

/** Refuses what is not a 64-bit unsigned bigint. */
export function checkAddress(value: unknown, what: string): asserts value is bigint {
  if (typeof value !== 'bigint') throw new TypeError(`${what} must be a bigint, got ${describeValue(value)}`)
  if (value < 0n || value > maxAddress) throw new RangeError(`${what} must be from 0 to 2^64-1, got ${value}n`)
}

export function checkContext(value: unknown, what: string): asserts value is bigint {
  checkAddress(value, what)
}

/** Refuses what is not a device ordinal, or -1 for "none". */
export function checkOrdinal(value: unknown, what: string): asserts value is number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < -1 || value > 0x7fff_ffff) {
    throw new TypeError(`${what} must be a device ordinal, or -1 for none, got ${describeValue(value)}`)
  }
}

/** Refuses what is not a byte or element count. */
export function checkCount(value: unknown, what: string): asserts value is number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new TypeError(`${what} must be a whole number from 0, got ${describeValue(value)}`)
  }
}

/** Whether a value is the plain descriptor of the given kind. */
export function isPlain<K extends string>(value: unknown, kind: K): value is { readonly kind: K } {
  return typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === kind
}

/** Handles and addresses mean something else, or nothing, in another process. */
export function checkSameProcess(descriptor: { readonly process: number }, what: string, wayOut: string): void {
  if (descriptor.process !== process.pid) {
    throw new TypeError(`this ${what} was described in process ${descriptor.process}, not in ${process.pid}. ${wayOut}`)
  }
}
