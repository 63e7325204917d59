import { isForged, isProxy, ofPublicClass } from './anyValue.js'
import { describeValue } from './describeValue.js'
import { inspectKey } from './inspection.js'

let last = 0

/** `structuredClone` and `postMessage` refuse symbols, and their error quotes this text. */
const notCloneable = Symbol(
  'an object of Shoal, which belongs to its thread: send what describes it, or share() its memory',
)

/**
 * Base class of the public objects of all packages.
 *
 * No two objects are deeply equal, because their differences are mostly private. They cannot be cloned.
 * `JSON.stringify` writes the line that `console.log` prints.
 */
export abstract class PublicObject {
  /** @internal Compared by `assert.deepStrictEqual` and similar functions. */
  declare readonly _identity: unknown
  /** @internal A symbol, so that `structuredClone` refuses the object. */
  declare readonly _thread: symbol

  /** @internal @param identity shared by objects that count as equal. Default: unique. */
  constructor(identity?: unknown) {
    // Assigned, not declared with a value: V8 defines a property slowly in a class with many subclasses.
    const self = this as { _identity: unknown; _thread: symbol }
    self._identity = identity ?? ++last
    self._thread = notCloneable
  }

  /** @internal Marks the class for {@link isForged}. */
  get [ofPublicClass](): true {
    return true
  }

  /** Returns one line for `console.log`: the class and its main values. Never throws. */
  abstract [inspectKey](): string

  /** Returns the line that `console.log` prints, for `JSON.stringify`. */
  toJSON(): unknown {
    return this[inspectKey]()
  }
}

/** Argument of constructors without another argument that a program would not pass. */
export const made: unique symbol = Symbol('made by its package')

/**
 * Refuses a direct call of a constructor that only its package may call.
 *
 * @param argument one that the package always passes and a program would not
 * @param type the type of `argument`
 * @throws TypeError that names the function to call instead
 */
export function requireMade(
  argument: unknown,
  name: string,
  instead: string,
  type: 'bigint' | 'boolean' | 'function' | 'number' | 'object' | 'string' | 'symbol' = 'bigint',
): void {
  if (typeof argument !== type) throw new TypeError(`new ${name}: make it with ${instead}, not with new`)
}

/** Refuses an object that only has the prototype of a public class. @throws TypeError */
export function refuseForged(value: unknown, api: string, name: string): void {
  if (!isForged(value)) return
  throw new TypeError(`${api}: ${name} must be an object that its package has made, not ${describeValue(value)}`)
}

/** Returns the error for a method called through a proxy, which has no private state. */
export function foreignThis(value: unknown, kind: string): TypeError {
  return new TypeError(`${kind}: this must be an object that its package has made, not ${describeValue(value)}`)
}

/** Reads a public object's protocol answer. @throws TypeError for a proxy around the object, which cannot answer */
export function answerOf<K extends PropertyKey, T>(
  object: { readonly [key in K]: T },
  key: K,
  api: string,
  name: string,
): T {
  try {
    return object[key]
  } catch (error) {
    if (isProxy(object)) throw new TypeError(`${api}: ${name} must be the object itself, not ${describeValue(object)}`)
    throw error
  }
}
