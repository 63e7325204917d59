/** What the type of a parameter lets through. `word` is one of a list of strings. */
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
  /** As TypeScript writes it. */
  readonly type: string
  readonly kinds: readonly Kind[]
  readonly isRest: boolean
  /** The keys, where it is an options object. */
  readonly options: readonly Parameter[]
}

/** A function of a package. */
export interface Callable {
  readonly place: 'export' | 'static' | 'method' | 'new'
  /** The exported class it belongs to. */
  readonly owner: string | undefined
  readonly name: string
  readonly parameters: readonly Parameter[]
}

/** What a child says, a line each. */
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
