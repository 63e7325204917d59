/**
 * A primitive with a name that the type checker keeps apart from others.
 *
 * For example, a stream handle is not an event handle. The brand exists at compile time only.
 */
export type Branded<T, B extends string> = T & { readonly __brand: B }
