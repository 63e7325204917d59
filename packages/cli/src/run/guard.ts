import { type ChildProcess, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

/**
 * Reads `+ GROUP` and `- GROUP`; when the input ends, whatever the reason, it kills the groups that are left. A shell,
 * because it starts in a millisecond and takes no memory worth speaking of.
 *
 * Until it reads `.` there may be a rank more than it was told of: `shoal run` can be killed when it has started one
 * and not said so yet. Such a rank is known by what is in its environment, and may still be on its way to have that.
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
 * Ends the ranks of a job whose `shoal run` was killed and can do nothing any more. It also ends those that are no Node
 * programs, hang in a native call, or have started others: it kills whole process groups.
 */
export class Guard {
  readonly #child: ChildProcess
  /** Absent where there were no descriptors for it. */
  readonly #input: Writable | undefined

  /**
   * @param mark - what no process but the ranks of this job, and what they start, has in its environment: `NAME=value`
   * @param onFailure - told when there can be no guard
   */
  constructor(mark: string, onFailure: (reason: string) => void) {
    // A session of its own: what ends the group of `shoal run` must not end the guard.
    const child = spawn('/bin/sh', ['-c', script, 'sh', mark], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      cwd: '/',
    })
    child.once('error', (error) => onFailure(error.message))
    child.unref()
    this.#child = child
    this.#input = (child as ChildProcess).stdin ?? undefined
    this.#input?.on('error', () => undefined) // without a guard there is nobody to tell
  }

  add(group: number): void {
    this.#input?.write(`+ ${group}\n`)
  }

  remove(group: number): void {
    this.#input?.write(`- ${group}\n`)
  }

  /** No further rank follows. */
  allStarted(): void {
    this.#input?.write('.\n')
  }

  /** Lets it end, after all groups were removed. */
  close(): void {
    this.#input?.end()
    this.#child.removeAllListeners('error')
    this.#child.on('error', () => undefined)
  }
}
