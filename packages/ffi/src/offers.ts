import { requireText } from '@shoal/types'
import { addon } from './addon/load.js'

/** A text that one other thread of this process can take once. */
export interface ThreadOffer {
  /** Key that another thread passes to take the text: 128 random bits. */
  readonly key: string
  /** Withdraws the text. Idempotent. */
  withdraw(): void
}

/**
 * Offers a text to one other thread of this process.
 *
 * The key may travel over any channel: it is useless in another process, and cannot be guessed. The text is withdrawn
 * when this thread ends.
 */
export function offerToThreads(text: string): ThreadOffer {
  const native = addon()
  const key = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
  native.putOffer(key, text)
  return { key, withdraw: () => native.dropOffer(key) }
}

/**
 * Takes the text that a thread of this process offers under a key.
 *
 * Returns undefined for an unknown key and for the second call. @throws TypeError
 */
export function takeOfThread(key: string): string | undefined {
  return addon().takeOffer(requireText(key, 'takeOfThread', 'key'))
}
