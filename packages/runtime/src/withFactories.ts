/** A class whose factories replace its constructor; `instanceof` works. */
export type WithFactories<T, F> = F & {
  readonly name: string
  readonly prototype: T
  [Symbol.hasInstance](value: unknown): value is T
}

/**
 * Combines a class of `@shoal/driver` with factories of this package, which default to the current device.
 *
 * `instanceof` accepts the same objects.
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
