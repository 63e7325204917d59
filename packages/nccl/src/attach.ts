/**
 * Attaches a second error to the first one, which will be thrown.
 *
 * Leaves errors without room for a property unchanged (a thrown string, a frozen error), because the first error
 * matters more.
 */
export function attachSuppressed(first: unknown, second: unknown): void {
  if (typeof first !== 'object' || first === null || !Object.isExtensible(first) || 'suppressed' in first) return
  Object.defineProperty(first, 'suppressed', { value: second, enumerable: true, configurable: true, writable: true })
}
