import { isInstance } from '../anyValue.js'
import { AbortedError } from '../errors/lifetime.js'
import { outOfRange, wrongType } from './scalars.js'

/** The keys an options object may have. Written as an object, so that the compiler sees that none of `T` is missing. */
export type OptionKeys<T> = { readonly [K in keyof Required<T>]: true }

/**
 * An options object: a plain object with known keys only. An instance of a class is refused, because it is an argument
 * in the wrong place (`record(stream)` for `record({ stream })`).
 * @throws TypeError that names the unknown key.
 */
export function requireOptions<T extends object>(
  value: unknown,
  api: string,
  keys: OptionKeys<T>,
  name = 'options',
): T {
  if (!isPlainObject(value)) throw wrongType(api, name, `a plain object such as ${example(keys)}`, value)
  // Inherited keys too: they would be read like all others.
  for (const key in value) {
    // A look-up costs less than a call of hasOwn. Names that every object inherits are not `true`.
    if ((keys as { readonly [key: string]: unknown })[key] !== true && !Object.hasOwn(keys, key)) {
      throw unknownKey(api, name, key, keys)
    }
  }
  return value as T
}

/**
 * {@link requireOptions} for calls that take less time than its look-ups: the first five keys are compared, and only
 * what is none of them is looked up.
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

/** The same where options may be left out: `{}` then. @throws TypeError */
export function optionalOptions<T extends object>(
  value: unknown,
  api: string,
  keys: OptionKeys<T>,
  name = 'options',
): T {
  return value === undefined ? ({} as T) : requireOptions(value, api, keys, name)
}

/** Whether a value is an object of no class, of this or of another realm. */
export function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  let prototype: unknown
  try {
    prototype = Object.getPrototypeOf(value)
  } catch {
    // A proxy that was revoked, or throws.
    return false
  }
  return prototype === Object.prototype || prototype === null || isForeignPlainPrototype(prototype as object)
}

// The prototype of plain objects has none of its own, in every realm. So has that of Object.create(null).
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

/** The word that a misspelled one stands for, if one is close: one contains the other, or few letters differ. */
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

/** How many letters have to be put in, left out, changed or swapped with the next one (Damerau and Levenshtein). */
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

/** The longest limit of a wait, in milliseconds: timers of JavaScript have no longer ones. About 24.8 days. */
export const longestTimeout = 2 ** 31 - 1

/** How long to wait for something. */
export interface WaitOptions {
  /** Ends the wait with `AbortedError`. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which the wait ends with `TimeoutError`, from 0 to 2^31 - 1. Default: no limit. */
  readonly timeout?: number | undefined
}

/** The keys of {@link WaitOptions}, for tables of keys that have them too. */
export const waitKeys: OptionKeys<WaitOptions> = { signal: true, timeout: true }

/** A limit in milliseconds, or undefined. @throws TypeError, RangeError */
export function optionalTimeout(value: unknown, api: string, name = 'timeout'): number | undefined {
  if (value === undefined) return undefined
  const expected = `a number of milliseconds from 0 to ${longestTimeout}`
  if (typeof value !== 'number' || Number.isNaN(value)) throw wrongType(api, name, expected, value)
  if (value < 0 || value > longestTimeout) throw outOfRange(api, name, expected, value)
  return value
}

/** A signal, or undefined. @throws TypeError */
export function optionalSignal(value: unknown, api: string, name = 'signal'): AbortSignal | undefined {
  if (value === undefined || isInstance(value, AbortSignal)) return value
  throw wrongType(api, name, 'an AbortSignal', value)
}

/** The options of a wait. @throws TypeError, RangeError; AbortedError where the signal has fired already. */
export function requireWaitOptions(value: unknown, api: string): WaitOptions {
  if (value === undefined) return {}
  const options = requireOptions<WaitOptions>(value, api, waitKeys)
  const signal = optionalSignal(options.signal, api)
  const timeout = optionalTimeout(options.timeout, api)
  if (signal?.aborted === true) throw new AbortedError({ operation: api, cause: signal.reason })
  return { signal, timeout }
}
