import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

/** Fewer would have threads of one process wait for each other. */
const fewest = 4
const most = 16

/**
 * The processors for one of so many processes, as `taskset` names them; undefined where there are too few to share out.
 * Every contestant gets the same: which core a process comes to lie on, and who its neighbours are, changes short calls by
 * half.
 */
export function processorsOf(
  index: number,
  processes: number,
  all: number = availableParallelism(),
): string | undefined {
  const share = Math.min(most, Math.floor(all / processes))
  return share < fewest ? undefined : `${index * share}-${(index + 1) * share - 1}`
}

let known: boolean | undefined

/** Whether processes can be kept to some processors here. */
export function canChooseProcessors(): boolean {
  known ??= process.platform === 'linux' && spawnSync('taskset', ['-c', '0', 'true']).status === 0
  return known
}
