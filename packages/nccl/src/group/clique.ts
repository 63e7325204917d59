import type { AgreedOperation } from '../lifetime/noted.js'

/** The ranks of one communicator that are in this thread, and what the group that is open asks of them. */
export interface Clique {
  /** Tells it from others, for names of those that are made of it. */
  readonly number: number
  /** How many ranks there are, those included whose init is still under way. */
  members: number
  /** The one that its members belong to, once that goes by its name too. */
  joined?: Clique
  /** Which ranks have been made. */
  readonly made: Set<number>
  /** The group that the rest is about; see `agreement.ts`. */
  group: number
  /** How far the rank that got furthest is. */
  length: number
  /** What was asked first at each place. Kept from group to group, so that a group in a loop makes nothing. */
  readonly operations: AgreedOperation[]
  /** Which rank asked for it. */
  readonly ranks: number[]
}

let made = 0

export function makeClique(): Clique {
  made += 1
  return { number: made, members: 0, made: new Set(), group: 0, length: 0, operations: [], ranks: [] }
}

const byName = new Map<string, WeakRef<Clique>>()

/** The clique of this name: the id by which its ranks join. It lives as long as someone holds it. */
export function cliqueOf(name: string): Clique {
  const found = byName.get(name)?.deref()
  if (found !== undefined) return wholeOf(found)
  for (const [other, reference] of byName) if (reference.deref() === undefined) byName.delete(other)
  const clique = makeClique()
  byName.set(name, new WeakRef(clique))
  return clique
}

/** The clique goes by another name as well. Whoever has come by that until now belongs to it. */
export function alsoKnownAs(clique: Clique, name: string): void {
  const other = cliqueOf(name)
  const whole = wholeOf(clique)
  if (other === whole) return
  // Nobody has been made of it: that takes all ranks, and this one only comes now.
  whole.members += other.members
  other.joined = whole
  byName.set(name, new WeakRef(whole))
}

/** What a clique has become a part of, or itself. */
export function wholeOf(clique: Clique): Clique {
  let whole = clique
  while (whole.joined !== undefined) whole = whole.joined
  return whole
}
