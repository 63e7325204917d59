/**
 * Notes a second error on the first one, which is the one to be thrown. What cannot carry a property (a string that was
 * thrown, a frozen error) stays as it is: the first error matters more than the second.
 */
export function attachSuppressed(first: unknown, second: unknown): void {
  if (typeof first !== 'object' || first === null || !Object.isExtensible(first) || 'suppressed' in first) return
  Object.defineProperty(first, 'suppressed', { value: second, enumerable: true, configurable: true, writable: true })
}
