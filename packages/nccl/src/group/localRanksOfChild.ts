import type { LiveCommunicator } from '../lifetime/live.js'
import { type LocalRanks, localRanksOf } from '../lifetime/localRanks.js'

/** Number of calls on a communicator, by key. */
const callCounts = new WeakMap<LiveCommunicator, Map<string, number>>()

/**
 * Returns the local ranks of a communicator that is derived from `live`.
 *
 * @param callKey names the call. All ranks of `live` make the same calls in the same order, so the n-th call with a key
 * is the same one on all of them.
 * @param childKey distinguishes the communicators of one call, such as the color of a split.
 */
export function localRanksOfChild(live: LiveCommunicator, callKey: string, childKey: string): LocalRanks | undefined {
  const { localRanks } = live
  if (localRanks === undefined) return undefined
  let counts = callCounts.get(live)
  if (counts === undefined) {
    counts = new Map()
    callCounts.set(live, counts)
  }
  const count = (counts.get(callKey) ?? 0) + 1
  counts.set(callKey, count)
  return localRanksOf(`${localRanks.number}/${callKey}/${count}/${childKey}`)
}
