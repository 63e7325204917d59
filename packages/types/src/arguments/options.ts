import { isInstance } from '../anyValue.js'
import { AbortedError } from '../errors/lifetime.js'
import { outOfRange, wrongType } from './scalars.js'

/** The keys an options object may have. Written as an object, so that the compiler sees that none of `T` is missing. */
export type OptionKeys<T> = { readonly [K in keyof Required<T>]: true }

/**
 * An options object: a plain object with known keys only. An instance of a class is refused, because it is an argument in
 * the wrong place (`record(stream)` for `record({ stream })`).
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
 * {@link requireOptions} for calls that take less time than its look-ups: the first five keys are compared, and only what is
 * none of them is looked up.
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
  return new TypeError(`${api}: ${name} must have only the keys ${Object.keys(keys).join(', ')}, not '${key}'`)
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
