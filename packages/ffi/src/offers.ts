import { requireText } from '@shoal/types'
import { addon } from './addon/load.js'

/** A text that other threads of this process, and no other process, can take once. */
export interface ThreadOffer {
  /** What another thread takes the text with: 128 random bits. */
  readonly key: string
  /** Takes the text back. Idempotent. */
  withdraw(): void
}

/**
 * Leaves a text for one other thread of this process. The key may travel over any channel: it is worth nothing in
 * another process, and nobody can guess it. The end of this thread takes the text back.
 */
export function offerToThreads(text: string): ThreadOffer {
  const native = addon()
  const key = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
  native.putOffer(key, text)
  return { key, withdraw: () => native.dropOffer(key) }
}

/**
 * The text that a thread of this process left under a key; undefined for any other key, and the second time. @throws
 * TypeError
 */
export function takeOfThread(key: string): string | undefined {
  return addon().takeOffer(requireText(key, 'takeOfThread', 'key'))
}
