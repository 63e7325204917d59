/** Kind of value that the type of a parameter accepts. `word` is one of a list of strings. */
export type Kind =
  | 'undefined'
  | 'null'
  | 'number'
  | 'number literal'
  | 'bigint'
  | 'boolean'
  | 'string'
  | 'word'
  | 'symbol'
  | 'function'
  | 'array'
  | 'empty object'
  | 'object'
  | 'unknown'

/** One parameter, or one key of an options object. */
export interface Parameter {
  readonly name: string
  /** The type as TypeScript prints it. */
  readonly type: string
  readonly kinds: readonly Kind[]
  readonly isRest: boolean
  /** The keys of an options object. Empty for any other type. */
  readonly options: readonly Parameter[]
}

/** A function of a package. */
export interface Callable {
  readonly place: 'export' | 'static' | 'method' | 'new'
  /** The exported class to which the function belongs. */
  readonly owner: string | undefined
  readonly name: string
  readonly parameters: readonly Parameter[]
}

/** A message of the child process. Each message is one line. */
export type Answer =
  | { readonly kind: 'asking'; readonly question: string }
  | {
      readonly kind: 'refused'
      readonly question: string
      readonly typed: boolean
      readonly named: boolean
      readonly message: string
    }
  | { readonly kind: 'accepted'; readonly question: string; readonly nonsense: boolean }
  | { readonly kind: 'unasked'; readonly api: string; readonly reason: string }
  | { readonly kind: 'end' }
