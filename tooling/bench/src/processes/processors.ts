import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** Processors per process. With fewer, its threads would wait for each other. */
const fewest = 4
const most = 16

/**
 * Processors for each of the processes, from those that this process may use. Undefined if there are too few. All
 * subjects get the same ones, because short calls take half as long again on a core that other work shares.
 */
export function sharesOf(processes: number, allowed: readonly number[]): number[][] | undefined {
  const share = Math.min(most, Math.floor(allowed.length / processes))
  if (share < fewest) return undefined
  return Array.from({ length: processes }, (_, index) => allowed.slice(index * share, (index + 1) * share))
}

/** Parses a list such as `0-3,8`. */
export function numbersIn(list: string): number[] {
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

let known: readonly number[] | undefined

/** The processors that this process may use; empty if there is no `taskset`. */
export function allowedProcessors(): readonly number[] {
  known ??= findAllowed()
  return known
}

function findAllowed(): readonly number[] {
  if (process.platform !== 'linux') return []
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  if (list === undefined || spawnSync('taskset', ['-c', list, 'true']).status !== 0) return []
  // A container may have a smaller share of processor time than its list of processors suggests.
  return numbersIn(list).slice(0, availableParallelism())
}
