/** A class whose objects are made by other functions than its own: it tells its objects, and makes none by itself. */
export type WithFactories<T, F> = F & {
  readonly name: string
  readonly prototype: T
  [Symbol.hasInstance](value: unknown): value is T
}

/**
 * The class of `@shoal/driver` with the factories of this package, which work on the current device where theirs are
 * told the owner. `instanceof` knows the same objects.
 */
export function withFactories<T, F extends object>(
  base: { readonly name: string; readonly prototype: T; [Symbol.hasInstance](value: unknown): boolean },
  factories: F,
): WithFactories<T, F> {
  return Object.freeze({
    ...factories,
    name: base.name,
    prototype: base.prototype,
    [Symbol.hasInstance]: (value: unknown): value is T => base[Symbol.hasInstance](value),
  })
}
