import type { LiveCommunicator } from '../lifetime/live.js'
import { type Clique, cliqueOf } from './clique.js'

/** How often a rank has derived a communicator, by what all its ranks say about it. */
const derived = new WeakMap<LiveCommunicator, Map<string, number>>()

/**
 * The clique of a communicator that is made of `live`: `common` is what all ranks give that call it, who call it equally
 * often, `part` what only those give that end up in the same communicator.
 */
export function derivedClique(live: LiveCommunicator, common: string, part: string): Clique | undefined {
  const { clique } = live
  if (clique === undefined) return undefined
  let counts = derived.get(live)
  if (counts === undefined) {
    counts = new Map()
    derived.set(live, counts)
  }
  const count = (counts.get(common) ?? 0) + 1
  counts.set(common, count)
  return cliqueOf(`${clique.number}/${common}/${count}/${part}`)
}
