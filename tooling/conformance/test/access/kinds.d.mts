/** Functions that create memory of each kind, by name. */
export declare const kinds: { readonly [name: string]: (use: (memory: unknown) => void) => unknown }
/** Kinds of memory that can only be written. */
export declare const writeOnly: ReadonlySet<string>
