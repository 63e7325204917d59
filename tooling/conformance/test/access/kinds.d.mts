/** What makes memory of each kind, by its name. */
export declare const kinds: { readonly [name: string]: (use: (memory: unknown) => void) => unknown }
/** Memory through which nothing is read. */
export declare const writeOnly: ReadonlySet<string>
