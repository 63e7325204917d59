import type { OperationSignature } from './checkedCollective.js'

/** The ranks of one communicator that are in this thread, and what the group that is open asks of them. */
export interface LocalRanks {
  /** Tells them from those of other communicators. */
  readonly number: number
  /** How many there are, those included whose init is still under way. */
  count: number
  /** The set that these have become a part of, once one name turned out to stand for both. */
  mergedInto?: LocalRanks
  /** Which ranks have been created. */
  readonly createdRanks: Set<number>
  /** The group that the rest is about; see `operationMatch.ts`. */
  group: number
  /** How far the rank that got furthest is. */
  length: number
  /** What was asked first at each place. Kept from group to group, so that a group in a loop allocates nothing. */
  readonly operations: OperationSignature[]
  /** Which rank asked for it. */
  readonly ranks: number[]
}

let created = 0

export function createLocalRanks(): LocalRanks {
  created += 1
  return { number: created, count: 0, createdRanks: new Set(), group: 0, length: 0, operations: [], ranks: [] }
}

const byName = new Map<string, WeakRef<LocalRanks>>()

/** The local ranks of this name: the id by which they join. They are remembered as long as someone holds them. */
export function localRanksOf(name: string): LocalRanks {
  const found = byName.get(name)?.deref()
  if (found !== undefined) return rootOf(found)
  for (const [other, reference] of byName) if (reference.deref() === undefined) byName.delete(other)
  const localRanks = createLocalRanks()
  byName.set(name, new WeakRef(localRanks))
  return localRanks
}

/** Gives local ranks a second name. Those that have come by that name until now are merged into them. */
export function mergeAlias(localRanks: LocalRanks, alias: string): void {
  const other = localRanksOf(alias)
  const root = rootOf(localRanks)
  if (other === root) return
  // None of the other set has been created: that takes all ranks, and this one only comes now.
  root.count += other.count
  other.mergedInto = root
  byName.set(alias, new WeakRef(root))
}

/** What local ranks have been merged into, or themselves. */
export function rootOf(localRanks: LocalRanks): LocalRanks {
  let root = localRanks
  while (root.mergedInto !== undefined) root = root.mergedInto
  return root
}

/**
 * `make` makes one of the local ranks, `join` lets it be one. It counts from the start: the others may be there before
 * it is made.
 */
export async function makeLocalRank<C extends object | undefined>(
  localRanks: LocalRanks | undefined,
  make: () => Promise<C>,
  join: (made: NonNullable<C>, localRanks: LocalRanks) => void,
): Promise<C> {
  if (localRanks === undefined) return make()
  localRanks.count += 1
  try {
    const made = await make()
    if (made !== undefined) join(made, rootOf(localRanks))
    return made
  } catch (error) {
    rootOf(localRanks).count -= 1
    throw error
  }
}
