/** What the process under test is asked to do, and what it answers. */

export type Question =
  /** Connects to the sender, for the questions that follow. */
  | { readonly ask: 'connect'; readonly path: string }
  | { readonly ask: 'receiveMemory' | 'frame' }
  | { readonly ask: 'receiveHandle'; readonly content: 'memory' | 'pool' }
  /** `receive` on a channel between processes that carries these messages and then closes. */
  | { readonly ask: 'receive'; readonly messages: readonly unknown[] }
  /** `share` on a channel between processes: the answer to `path` comes first. */
  | { readonly ask: 'share' }
  /** `share` and `receive` over ports of one thread, with messages changed on their way. */
  | { readonly ask: 'thread'; readonly seed: number }
  /** Where memory lies that is never shared. */
  | { readonly ask: 'secret' }
  /** Whether anything is left, and whether what was never shared is as it was. */
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
      /** The first and the last bytes, hexadecimal. */
      readonly start: string
      readonly end: string
      /** Whether it is memory of the process under test: it may be opened where that process has shared it itself. */
      readonly own: boolean
    }
  | { readonly kind: 'wrong'; readonly what: string }
