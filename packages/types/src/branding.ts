/**
 * A primitive that the type checker keeps apart from other primitives of the same kind, such as a stream handle from an
 * event handle. It exists at compile time only: at run time the value is the bare primitive.
 */
export type Branded<T, B extends string> = T & { readonly __brand: B }
