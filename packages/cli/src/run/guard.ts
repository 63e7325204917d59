import { type ChildProcess, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

/**
 * Reads `+ GROUP` and `- GROUP`; when the input ends, whatever the reason, it kills the groups that are left. A shell,
 * because it starts in a millisecond and takes no memory worth speaking of.
 */
const script = `
trap '' HUP INT TERM QUIT
left=' '
while read -r sign group; do
  if [ "$sign" = + ]; then
    left="$left$group "
  else
    left="\${left%%" $group "*} \${left#*" $group "}"
  fi
done
for group in $left; do kill -s KILL -- "-$group"; done
`

/**
 * Ends the ranks of a job whose `shoal run` was killed and can do nothing any more. It also ends those that are no Node
 * programs, hang in a native call, or have started others: it kills whole process groups.
 */
export class Guard {
  readonly #child: ChildProcess
  readonly #input: Writable

  /** @param onFailure - told when there can be no guard */
  constructor(onFailure: (reason: string) => void) {
    // A session of its own: what ends the group of `shoal run` must not end the guard.
    const child = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'], detached: true, cwd: '/' })
    child.once('error', (error) => onFailure(error.message))
    child.stdin.on('error', () => undefined) // without a guard there is nobody to tell
    child.unref()
    this.#child = child
    this.#input = child.stdin
  }

  add(group: number): void {
    this.#input.write(`+ ${group}\n`)
  }

  remove(group: number): void {
    this.#input.write(`- ${group}\n`)
  }

  /** Lets it end, after all groups were removed. */
  close(): void {
    this.#input.end()
    this.#child.removeAllListeners('error')
    this.#child.on('error', () => undefined)
  }
}
