import { isInstance } from '../anyValue.js'
import { AbortedError } from '../errors/lifetime.js'
import { outOfRange, wrongType } from './scalars.js'

/** Allowed keys of an options object. An object, so that the compiler reports missing keys of `T`. */
export type OptionKeys<T> = { readonly [K in keyof Required<T>]: true }

/**
 * Returns an options object: a plain object with known keys only.
 *
 * Refuses instances of classes, because they are usually arguments in the wrong place (`record(stream)` for
 * `record({ stream })`).
 * @throws TypeError that names the unknown key
 */
export function requireOptions<T extends object>(
  value: unknown,
  api: string,
  keys: OptionKeys<T>,
  name = 'options',
): T {
  if (!isPlainObject(value)) throw wrongType(api, name, `a plain object such as ${example(keys)}`, value)
  // Inherited keys count too, because reading an option finds them.
  for (const key in value) {
    // A look-up is faster than `hasOwn`. Names that every object inherits are not `true`.
    if ((keys as { readonly [key: string]: unknown })[key] !== true && !Object.hasOwn(keys, key)) {
      throw unknownKey(api, name, key, keys)
    }
  }
  return value as T
}

/**
 * Returns a faster {@link requireOptions} for short calls.
 *
 * Compares with the first five keys and looks up only other keys.
 */
export function optionsChecker<T extends object>(
  keys: OptionKeys<T>,
  name = 'options',
): (value: unknown, api: string) => T {
  const [first, second, third, fourth, fifth] = Object.keys(keys)
  return (value, api) => {
    if (!isPlainObject(value)) return requireOptions(value, api, keys, name)
    for (const key in value) {
      if (key === first || key === second || key === third || key === fourth || key === fifth) continue
      return requireOptions(value, api, keys, name)
    }
    return value as T
  }
}

/** Like {@link requireOptions}, but returns `{}` for undefined. @throws TypeError */
export function optionalOptions<T extends object>(
  value: unknown,
  api: string,
  keys: OptionKeys<T>,
  name = 'options',
): T {
  return value === undefined ? ({} as T) : requireOptions(value, api, keys, name)
}

/** True for an object without a class, from this realm or another. */
export function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  let prototype: unknown
  try {
    prototype = Object.getPrototypeOf(value)
  } catch {
    // A revoked or throwing proxy.
    return false
  }
  return prototype === Object.prototype || prototype === null || isForeignPlainPrototype(prototype as object)
}

// In every realm the prototype of plain objects has a null prototype, and so has `Object.create(null)`.
function isForeignPlainPrototype(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty')
}

function example(keys: object): string {
  return `{ ${Object.keys(keys).slice(0, 3).join(', ')} }`
}

function unknownKey(api: string, name: string, key: string, keys: object): TypeError {
  const meant = closestTo(key, Object.keys(keys))
  const hint = meant === undefined ? '' : `; did you mean '${meant}'?`
  return new TypeError(`${api}: ${name} must have only the keys ${Object.keys(keys).join(', ')}, not '${key}'${hint}`)
}

/**
 * Returns the word closest to a misspelled one.
 *
 * Undefined unless one contains the other or few letters differ.
 */
function closestTo(given: string, words: readonly string[]): string | undefined {
  if (given.length > 40) return undefined
  const low = given.toLowerCase()
  let closest: string | undefined
  let least = Math.max(1, Math.floor(low.length / 3)) + 1
  for (const word of words) {
    const other = word.toLowerCase()
    const contains = low.length > 2 && (other.includes(low) || (other.length > 2 && low.includes(other)))
    const distance = contains ? 1 : lettersBetween(low, other)
    if (distance >= least) continue
    closest = word
    least = distance
  }
  return closest
}

/** Damerau–Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours. */
function lettersBetween(from: string, to: string): number {
  let before: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const changed = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const swapped = isSwapped ? (before[j - 2] as number) + 1 : changed
      next.push(Math.min(changed, swapped, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    before = row
    row = next
  }
  return row[to.length] as number
}

/** Longest timeout of a wait in milliseconds, about 24.8 days: the limit of JavaScript timers. */
export const longestTimeout = 2 ** 31 - 1

/** Options that limit a wait. */
export interface WaitOptions {
  /** Ends the wait with `AbortedError` when the signal fires. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which the wait ends with `TimeoutError`, from 0 to 2^31 - 1. Default: no limit. */
  readonly timeout?: number | undefined
}

/** Keys of {@link WaitOptions}, for key tables that include them. */
export const waitKeys: OptionKeys<WaitOptions> = { signal: true, timeout: true }

/** Returns a timeout in milliseconds, or undefined. @throws TypeError, RangeError */
export function optionalTimeout(value: unknown, api: string, name = 'timeout'): number | undefined {
  if (value === undefined) return undefined
  const expected = `a number of milliseconds from 0 to ${longestTimeout}`
  if (typeof value !== 'number' || Number.isNaN(value)) throw wrongType(api, name, expected, value)
  if (value < 0 || value > longestTimeout) throw outOfRange(api, name, expected, value)
  return value
}

/** Returns a signal, or undefined. @throws TypeError */
export function optionalSignal(value: unknown, api: string, name = 'signal'): AbortSignal | undefined {
  if (value === undefined || isInstance(value, AbortSignal)) return value
  throw wrongType(api, name, 'an AbortSignal', value)
}

/** Returns checked wait options. @throws TypeError, RangeError; AbortedError if the signal has already fired */
export function requireWaitOptions(value: unknown, api: string): WaitOptions {
  if (value === undefined) return {}
  const options = requireOptions<WaitOptions>(value, api, waitKeys)
  const signal = optionalSignal(options.signal, api)
  const timeout = optionalTimeout(options.timeout, api)
  if (signal?.aborted === true) throw new AbortedError({ operation: api, cause: signal.reason })
  return { signal, timeout }
}
