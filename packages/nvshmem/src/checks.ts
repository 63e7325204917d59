import { describeValue } from '@shoal/types'

/** Checks of arguments. Each throws a TypeError or RangeError that names the method and the parameter. */

export function requireWhole(value: unknown, name: string, least: number, most: number, api: string): number {
  if (typeof value !== 'number' || Number.isNaN(value)) {
    throw new TypeError(`${api}: ${name} must be a number, got ${describeValue(value)}`)
  }
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new RangeError(`${api}: ${name} must be a whole number from ${least} to ${most}, got ${value}`)
}

/** A number of elements or bytes: a safe integer of at least `least`, also as a bigint. */
export function requireCount(value: unknown, name: string, least: number, api: string): number {
  const count = typeof value === 'bigint' ? Number(value) : value
  if (typeof count !== 'number' || Number.isNaN(count) || (Number.isFinite(count) && !Number.isInteger(count))) {
    throw new TypeError(`${api}: ${name} must be a whole number, got ${describeValue(value)}`)
  }
  if (!Number.isSafeInteger(count) || count < least) {
    throw new RangeError(`${api}: ${name} must be from ${least} to 2^53 - 1, got ${describeValue(value)}`)
  }
  return count
}

export function requireOptions(options: unknown, api: string, shape: string): asserts options is object {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${api}: options are needed: ${shape}; got ${describeValue(options)}`)
  }
}

export function requireSignal(signal: unknown, api: string): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`${api}: signal must be an AbortSignal, got ${describeValue(signal)}`)
  }
}

export function requireTimeout(timeout: unknown, api: string): void {
  if (timeout === undefined || (typeof timeout === 'number' && timeout >= 0)) return
  throw new RangeError(`${api}: timeout must be a non-negative number of milliseconds, got ${describeValue(timeout)}`)
}

/** A PE by its number in a team of `count`. */
export function requirePe(pe: unknown, count: number, api: string, name = 'pe'): number {
  if (typeof pe !== 'number' || Number.isNaN(pe)) {
    throw new TypeError(`${api}: ${name} must be the number of a PE, got ${describeValue(pe)}`)
  }
  if (Number.isInteger(pe) && pe >= 0 && pe < count) return pe
  throw new RangeError(`${api}: there is no PE ${pe}; ${name} must be from 0 to ${count - 1}`)
}

/** One of the words of a table, such as an operation. */
export function requireWord<T>(words: { readonly [word: string]: T }, word: unknown, name: string, api: string): T {
  if (typeof word === 'string' && Object.hasOwn(words, word)) return words[word] as T
  throw new TypeError(`${api}: ${name} must be one of ${Object.keys(words).join(', ')}; got ${describeValue(word)}`)
}
