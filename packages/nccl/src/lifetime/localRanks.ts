import type { OperationSignature } from './checkedCollective.js'

/** The ranks of one communicator in this thread, and their calls in the open group. */
export interface LocalRanks {
  /** Distinguishes them from those of other communicators. */
  readonly number: number
  /** Number of ranks, including those whose init is in progress. */
  count: number
  /** The set that contains these ranks, after two names turned out to mean the same communicator. */
  mergedInto?: LocalRanks
  /** Created ranks. */
  readonly createdRanks: Set<number>
  /** The group of the following fields; see `operationMatch.ts`. */
  group: number
  /** Most calls of one rank so far. */
  length: number
  /** The first call at each position. Reused by later groups, so that a group in a loop allocates nothing. */
  readonly operations: OperationSignature[]
  /** The rank that made it. */
  readonly ranks: number[]
}

let created = 0

export function createLocalRanks(): LocalRanks {
  created += 1
  return { number: created, count: 0, createdRanks: new Set(), group: 0, length: 0, operations: [], ranks: [] }
}

const byName = new Map<string, WeakRef<LocalRanks>>()

/** Returns the local ranks of a name, the id by which they join. Names are kept while the ranks are in use. */
export function localRanksOf(name: string): LocalRanks {
  const found = byName.get(name)?.deref()
  if (found !== undefined) return rootOf(found)
  for (const [other, reference] of byName) if (reference.deref() === undefined) byName.delete(other)
  const localRanks = createLocalRanks()
  byName.set(name, new WeakRef(localRanks))
  return localRanks
}

/** Gives local ranks a second name, and merges ranks that already joined under that name. */
export function mergeAlias(localRanks: LocalRanks, alias: string): void {
  const other = localRanksOf(alias)
  const root = rootOf(localRanks)
  if (other === root) return
  // No rank of the other set has been created yet: creation needs all ranks, including this one.
  root.count += other.count
  other.mergedInto = root
  byName.set(alias, new WeakRef(root))
}

/** Returns the set that local ranks were merged into, or themselves. */
export function rootOf(localRanks: LocalRanks): LocalRanks {
  let root = localRanks
  while (root.mergedInto !== undefined) root = root.mergedInto
  return root
}

/**
 * Makes a local rank with `make` and adds it with `join`.
 *
 * It counts from the start, because other ranks may be complete before it.
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
