import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** Fewer would have threads of one process wait for each other. */
const fewest = 4
const most = 16

/**
 * The processors for each of so many processes, of those that this process may use; undefined where there are too few to
 * share out. Every contestant gets the same: which core a process comes to lie on, and who its neighbours are, changes
 * short calls by half.
 */
export function sharesOf(processes: number, allowed: readonly number[]): number[][] | undefined {
  const share = Math.min(most, Math.floor(allowed.length / processes))
  if (share < fewest) return undefined
  return Array.from({ length: processes }, (_, index) => allowed.slice(index * share, (index + 1) * share))
}

/** The numbers in a list as Linux writes it: `0-3,8`. */
export function numbersIn(list: string): number[] {
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

let known: readonly number[] | undefined

/** The processors that this process may use; none where processes cannot be kept to some of them. */
export function allowedProcessors(): readonly number[] {
  known ??= findAllowed()
  return known
}

function findAllowed(): readonly number[] {
  if (process.platform !== 'linux') return []
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  if (list === undefined || spawnSync('taskset', ['-c', list, 'true']).status !== 0) return []
  // A container may have less time than all of them would give.
  return numbersIn(list).slice(0, availableParallelism())
}
