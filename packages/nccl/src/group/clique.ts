import type { AgreedOperation } from '../lifetime/noted.js'

/** The communicators of this process that are known to be ranks of one: what the group that is open asks of them. */
export interface Clique {
  /** How many there have been. */
  members: number
  /** The group that the rest is about; see `agreement.ts`. */
  group: number
  /** How far the rank that got furthest is. */
  length: number
  /** What was asked first at each place. Kept from group to group, so that a group in a loop makes nothing. */
  readonly operations: AgreedOperation[]
  /** Which rank asked for it. */
  readonly ranks: number[]
}

export function makeClique(): Clique {
  return { members: 0, group: 0, length: 0, operations: [], ranks: [] }
}

const byId = new Map<string, WeakRef<Clique>>()

/** The clique of those who joined by this id. It lives as long as a communicator holds it. */
export function cliqueOf(id: string): Clique {
  const found = byId.get(id)?.deref()
  if (found !== undefined) return found
  for (const [other, reference] of byId) if (reference.deref() === undefined) byId.delete(other)
  const made = makeClique()
  byId.set(id, new WeakRef(made))
  return made
}
