/**
 * Questions about values of which nothing is known. A proxy that was revoked throws an error of the engine whatever it
 * is asked; here it is simply nothing.
 */

/** Key of a property of the prototype of `PublicObject`. */
export const ofPublicClass: unique symbol = Symbol('of a public class')

/** Whether an object only has the prototype of a public class: its constructor has not run. */
export function isForged(value: unknown): boolean {
  try {
    return typeof value === 'object' && value !== null && ofPublicClass in value && !Object.hasOwn(value, '_identity')
  } catch {
    // A proxy that was revoked, or throws: others say what it is.
    return false
  }
}

/**
 * Whether a value is an instance of a class. A revoked proxy, which cannot be asked, is none, nor what only has its
 * prototype.
 */
export function isInstance<T>(
  value: unknown,
  publicClass: { readonly [Symbol.hasInstance]: (value: unknown) => boolean; readonly prototype: T },
): value is T {
  try {
    return value instanceof (publicClass as unknown as new () => T) && !isForged(value)
  } catch {
    return false
  }
}

/** A property of whatever it is: undefined where it cannot have any. What a getter throws reaches the caller. */
export function propertyOf(value: unknown, key: PropertyKey): unknown {
  if (value === undefined || value === null) return undefined
  try {
    return (value as { readonly [key: PropertyKey]: unknown })[key]
  } catch (error) {
    if (isRevoked(value)) return undefined
    throw error
  }
}

/** Whether a value is a proxy that was revoked, of which nothing can be asked. */
export function isRevoked(value: unknown): boolean {
  try {
    return Object.getPrototypeOf(value) === undefined
  } catch {
    return true
  }
}

/**
 * Whether a value is a proxy: its target's methods cannot read private state through it. Takes 25 ns, so calls ask when
 * something failed.
 */
export function isProxy(value: unknown): boolean {
  return process.getBuiltinModule('node:util').types.isProxy(value)
}

/** Whether a value is an array. A revoked proxy, which cannot be asked, is none. */
export function isArray(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value)
  } catch {
    return false
  }
}
