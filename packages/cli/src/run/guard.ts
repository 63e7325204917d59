import { type ChildProcess, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

/**
 * Reads `+ GROUP` and `- GROUP`. When the input ends for any reason, it kills the remaining groups.
 *
 * It is a shell script, because a shell starts in a millisecond and takes little memory.
 *
 * Until it reads `.`, there may be a rank that it does not know: `shoal run` can be killed between starting a rank and
 * reporting it. Such a rank is found by its environment, which it may not have yet.
 */
const script = `
trap '' HUP INT TERM QUIT
left=' '
starting=yes
while read -r sign group; do
  case "$sign" in
    +) left="$left$group " ;;
    -) left="\${left%%" $group "*} \${left#*" $group "}" ;;
    .) starting= ;;
  esac
done
for group in $left; do kill -s KILL -- "-$group"; done
[ -n "$starting" ] || exit 0
for pause in 0 0.1 0.4 1; do
  sleep "$pause"
  for file in $(grep -lszxF -e "$1" /proc/[0-9]*/environ); do
    group=\${file#/proc/}
    kill -s KILL -- "-\${group%/environ}"
  done
done
`

/**
 * Ends the ranks of a job whose `shoal run` was killed.
 *
 * It kills whole process groups. So it also ends ranks that are not Node programs, hang in a native call, or have
 * started other processes.
 */
export class Guard {
  readonly #child: ChildProcess
  /** Absent if no descriptors were available. */
  readonly #input: Writable | undefined

  /**
   * @param mark - `NAME=value`, in the environment of this job's ranks and their child processes only
   * @param onFailure - called if the guard cannot start
   */
  constructor(mark: string, onFailure: (reason: string) => void) {
    // A separate session: a signal to the group of `shoal run` must not end the guard.
    const child = spawn('/bin/sh', ['-c', script, 'sh', mark], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      cwd: '/',
    })
    child.once('error', (error) => onFailure(error.message))
    child.unref()
    this.#child = child
    this.#input = (child as ChildProcess).stdin ?? undefined
    this.#input?.on('error', () => undefined) // errors matter only while the guard runs
  }

  add(group: number): void {
    this.#input?.write(`+ ${group}\n`)
  }

  remove(group: number): void {
    this.#input?.write(`- ${group}\n`)
  }

  /** Reports that no more ranks start. */
  allStarted(): void {
    this.#input?.write('.\n')
  }

  /** Ends the guard, after all groups were removed. */
  close(): void {
    this.#input?.end()
    this.#child.removeAllListeners('error')
    this.#child.on('error', () => undefined)
  }
}
