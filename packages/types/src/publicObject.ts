import { isForged, isProxy, ofPublicClass } from './anyValue.js'
import { describeValue } from './describeValue.js'
import { inspectKey } from './inspection.js'

let last = 0

/** Why `structuredClone` and `postMessage` refuse an object: the error quotes this text. */
const notCloneable = Symbol(
  'an object of Shoal, which belongs to its thread: send what describes it, or share() its memory',
)

/**
 * What the objects of all packages have in common. No two are deeply equal, since most of what makes them differ is
 * private. They cannot be cloned. `JSON.stringify` has the line that `console.log` prints.
 */
export abstract class PublicObject {
  /** @internal Compared by `assert.deepStrictEqual` and its like. */
  declare readonly _identity: unknown
  /** @internal Found by `structuredClone`, which cannot clone it. */
  declare readonly _thread: symbol

  /** @internal @param identity what objects that count as equal have in common. Default: none are equal. */
  constructor(identity?: unknown) {
    // Assigned, not declared with a value: defining a property is a slow call of V8 in a class that so many extend.
    const self = this as { _identity: unknown; _thread: symbol }
    self._identity = identity ?? ++last
    self._thread = notCloneable
  }

  /** @internal Tells {@link isForged} that objects of this class have an identity. */
  get [ofPublicClass](): true {
    return true
  }

  /** One line for `console.log`: the class and what it is. Never throws. */
  abstract [inspectKey](): string

  /** The line that `console.log` prints, for `JSON.stringify`. */
  toJSON(): unknown {
    return this[inspectKey]()
  }
}

/** Argument of constructors that have no other that a program would not write. */
export const made: unique symbol = Symbol('made by its package')

/**
 * For a constructor that only its package calls.
 * @param argument one that the package always passes and a program would not, and its type.
 * @throws TypeError which says what to call
 */
export function requireMade(
  argument: unknown,
  name: string,
  instead: string,
  type: 'bigint' | 'boolean' | 'function' | 'number' | 'object' | 'string' | 'symbol' = 'bigint',
): void {
  if (typeof argument !== type) throw new TypeError(`new ${name}: make it with ${instead}, not with new`)
}

/** @throws TypeError for an object that only has the prototype of a public class */
export function refuseForged(value: unknown, api: string, name: string): void {
  if (!isForged(value)) return
  throw new TypeError(`${api}: ${name} must be an object that its package has made, not ${describeValue(value)}`)
}

/** The error of a method that is called through a proxy, which has no private state. */
export function foreignThis(value: unknown, kind: string): TypeError {
  return new TypeError(`${kind}: this must be an object that its package has made, not ${describeValue(value)}`)
}

/**
 * What an object of a public class answers by a protocol. @throws TypeError for a proxy around one, which cannot answer
 */
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
