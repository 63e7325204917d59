/** Requests to the process under test, and its answers. */

export type Question =
  /** Connects to the sender, for the next questions. */
  | { readonly ask: 'connect'; readonly path: string }
  | { readonly ask: 'receiveMemory' | 'frame' }
  | { readonly ask: 'receiveHandle'; readonly content: 'memory' | 'pool' }
  /** Calls `receive` on a channel between processes that delivers these messages and then closes. */
  | { readonly ask: 'receive'; readonly messages: readonly unknown[] }
  /** Calls `share` on a channel between processes. The first outcome is `path`, the second one is the result. */
  | { readonly ask: 'share' }
  /** Calls `share` and `receive` over ports of one thread, and changes the messages between them. */
  | { readonly ask: 'thread'; readonly seed: number }
  /** Returns the address of memory that is never shared. */
  | { readonly ask: 'secret' }
  /** Checks that nothing is left open, and that memory that was never shared is unchanged. */
  | { readonly ask: 'check' }

export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'secret'; readonly address: string; readonly process: number }
  | { readonly kind: 'refused'; readonly name: string; readonly message: string; readonly code: string }
  | {
      readonly kind: 'opened'
      readonly way: string
      readonly byteLength: number
      /** The first and the last bytes, in hexadecimal. */
      readonly start: string
      readonly end: string
      /** True if the memory belongs to the process under test. It may only be opened if that process has shared it. */
      readonly own: boolean
    }
  | { readonly kind: 'wrong'; readonly what: string }
