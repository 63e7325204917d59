import { isArray, isRevoked, propertyOf } from '../anyValue.js'
import { describeValue } from '../describeValue.js'

/**
 * Argument checks that all safe packages share.
 *
 * Each takes the name of the public function (`api`) and of its parameter. Each throws a TypeError (wrong kind) or a
 * RangeError (out of range) whose message reads `API: NAME must be …, not …`.
 */

/** Returns the error for a value of the wrong kind. */
export function wrongType(api: string, name: string, expected: string, value: unknown): TypeError {
  return new TypeError(`${api}: ${name} must be ${expected}, not ${describeValue(value)}`)
}

/** Returns the error for a value of the right kind that is out of range. */
export function outOfRange(api: string, name: string, expected: string, value: unknown): RangeError {
  return new RangeError(`${api}: ${name} must be ${expected}, not ${describeValue(value)}`)
}

function limits(least: number, greatest: number): string {
  const end = greatest === Number.MAX_SAFE_INTEGER ? '2^53 - 1' : greatest
  return `an integer from ${least} to ${end}`
}

/** Returns an integer from `least` to `greatest`. @throws TypeError for NaN, fractions and other kinds, RangeError */
export function requireInteger(
  value: unknown,
  api: string,
  name: string,
  least: number,
  greatest: number = Number.MAX_SAFE_INTEGER,
): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= greatest) return value
  throw wrongInteger(value, api, name, least, greatest)
}

/** A separate function, so that V8 inlines the check into its callers. */
function wrongInteger(value: unknown, api: string, name: string, least: number, greatest: number): Error {
  const isTooFar = Number.isInteger(value) || value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY
  return (isTooFar ? outOfRange : wrongType)(api, name, limits(least, greatest), value)
}

/**
 * Returns a count of elements or bytes, also from a bigint. @throws TypeError, RangeError outside `least` to `greatest`
 */
export function requireCount(
  value: unknown,
  api: string,
  name: string,
  least = 0,
  greatest: number = Number.MAX_SAFE_INTEGER,
): number {
  if (typeof value !== 'bigint') return requireInteger(value, api, name, least, greatest)
  if (value >= BigInt(least) && value <= BigInt(greatest)) return Number(value)
  throw outOfRange(api, name, limits(least, greatest), value)
}

/** Returns a number from `least` to `greatest`, not NaN. @throws TypeError, RangeError */
export function requireNumber(
  value: unknown,
  api: string,
  name: string,
  least: number = Number.NEGATIVE_INFINITY,
  greatest: number = Number.POSITIVE_INFINITY,
): number {
  if (typeof value !== 'number' || Number.isNaN(value)) throw wrongType(api, name, 'a number', value)
  if (value >= least && value <= greatest) return value
  throw outOfRange(api, name, `a number from ${least} to ${greatest}`, value)
}

const endOf64Bits = 2n ** 64n

/** Returns an address or a handle: an unsigned 64-bit bigint. @throws TypeError, RangeError */
export function requireAddress(value: unknown, api: string, name: string): bigint {
  if (typeof value !== 'bigint') throw wrongType(api, name, 'a bigint', value)
  if (value < 0n || value >= endOf64Bits) throw outOfRange(api, name, 'a bigint of 64 bits without a sign', value)
  return value
}

/** Returns a boolean. @throws TypeError */
export function requireBoolean(value: unknown, api: string, name: string): boolean {
  if (typeof value !== 'boolean') throw wrongType(api, name, 'a boolean', value)
  return value
}

/** Returns a boolean option or its default. @throws TypeError */
export function optionalBoolean(value: unknown, api: string, name: string, fallback: boolean): boolean {
  return value === undefined ? fallback : requireBoolean(value, api, name)
}

/** Returns a string for C: not empty and without NUL, where C would cut it. @throws TypeError, RangeError */
export function requireText(value: unknown, api: string, name: string): string {
  if (typeof value !== 'string') throw wrongType(api, name, 'a string', value)
  if (value.length === 0) throw outOfRange(api, name, 'a string that is not empty', value)
  if (value.includes('\0')) {
    throw new TypeError(`${api}: ${name} must be a string without NUL characters, not ${JSON.stringify(value)}`)
  }
  return value
}

/** Returns an object with a length and entries. @throws TypeError, also for iterables without a length */
export function requireArrayLike<T>(value: ArrayLike<T>, api: string, name: string): ArrayLike<T> {
  try {
    if (typeof value === 'object' && value !== null && typeof value.length === 'number') return value
  } catch (error) {
    if (!isRevoked(value)) throw error
  }
  throw wrongType(api, name, 'an array', value)
}

/** Returns a copy of an array; holes become undefined. @throws TypeError */
export function requireList<T>(value: readonly T[], api: string, name: string, expected = 'an array'): T[] {
  if (!isArray(value)) throw wrongType(api, name, expected, value)
  return Array.from(value)
}

/** Requires a function. @throws TypeError */
export function requireFunction(value: unknown, api: string, name: string): void {
  if (typeof value !== 'function') throw wrongType(api, name, 'a function', value)
}

const unfinished: { readonly [tag: string]: string } = {
  AsyncFunction: 'an async function',
  GeneratorFunction: 'a generator function',
  AsyncGeneratorFunction: 'an async generator function',
}

/** Requires a synchronous function. @throws TypeError for async functions, generators and other values */
export function requireSynchronousFunction(value: unknown, api: string, name: string): void {
  requireFunction(value, api, name)
  const tag = propertyOf(value, Symbol.toStringTag)
  const kind = typeof tag === 'string' ? unfinished[tag] : undefined
  if (kind !== undefined) throw new TypeError(`${api}: ${name} must be a synchronous function, not ${kind}`)
}

/** Returns the result of a synchronous function. @throws TypeError for a promise */
export function requireSynchronous<T>(result: T, api: string): T {
  if (typeof (result as { then?: unknown } | null | undefined)?.then !== 'function') return result
  // The TypeError below reports the mistake; a rejection of the promise adds nothing.
  Promise.resolve(result).catch(() => undefined)
  throw new TypeError(`${api}: fn must be a synchronous function, not one that returns a promise`)
}

/** Returns a word of a list. @throws TypeError that lists the words */
export function requireOneOf<W extends string>(value: unknown, api: string, name: string, words: readonly W[]): W {
  if (typeof value === 'string' && (words as readonly string[]).includes(value)) return value as W
  throw wrongType(api, name, listOf(words), value)
}

/** Returns the table's value for a word. @throws TypeError that lists the words */
export function requireKeyOf<T>(value: unknown, api: string, name: string, table: { readonly [word: string]: T }): T {
  if (typeof value === 'string' && Object.hasOwn(table, value)) return table[value] as T
  throw wrongType(api, name, listOf(Object.keys(table)), value)
}

const mostListed = 24

function listOf(words: readonly string[]): string {
  const quoted = words.slice(0, mostListed).map((word) => `'${word}'`)
  if (words.length > mostListed)
    return `one of the ${words.length} names there are (${quoted.slice(0, 3).join(', ')}, …)`
  return quoted.length === 1 ? (quoted[0] as string) : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
}
