/** Checks of values of unknown origin. They never throw for a revoked proxy, on which every operation throws. */

/** Key that marks the prototype of `PublicObject`. */
export const ofPublicClass: unique symbol = Symbol('of a public class')

/** True for an object with the prototype of a public class whose constructor never ran. */
export function isForged(value: unknown): boolean {
  try {
    return typeof value === 'object' && value !== null && ofPublicClass in value && !Object.hasOwn(value, '_identity')
  } catch {
    // A revoked or throwing proxy; the caller reports its type.
    return false
  }
}

/** Tests `instanceof` safely. False for a revoked proxy and for an object that only has the prototype of the class. */
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

/**
 * Reads a property of any value; undefined if the value cannot have properties.
 *
 * Errors of a getter reach the caller.
 */
export function propertyOf(value: unknown, key: PropertyKey): unknown {
  if (value === undefined || value === null) return undefined
  try {
    return (value as { readonly [key: PropertyKey]: unknown })[key]
  } catch (error) {
    if (isRevoked(value)) return undefined
    throw error
  }
}

/** True for a revoked proxy, on which every operation throws. */
export function isRevoked(value: unknown): boolean {
  try {
    return Object.getPrototypeOf(value) === undefined
  } catch {
    return true
  }
}

/**
 * True for a proxy, through which methods cannot read private state.
 *
 * Takes 25 ns, so callers check only after a failure.
 */
export function isProxy(value: unknown): boolean {
  return process.getBuiltinModule('node:util').types.isProxy(value)
}

/** Tests `Array.isArray` safely: false for a revoked proxy. */
export function isArray(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value)
  } catch {
    return false
  }
}
