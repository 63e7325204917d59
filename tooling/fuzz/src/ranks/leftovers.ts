import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds for what ends by itself: the guard of `shoal run` and the process that serves a rendezvous. */
const waitLimit = 20_000

/** The processes that have these words in their environment. */
function processesWith(words: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(words) && !isOver(pid)
      } catch {
        return false // it has just ended
      }
    })
    .map((pid) => `process ${pid}`)
}

/** Whether it has ended and was not asked for its status yet. */
function isOver(pid: string): boolean {
  return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/\(.*\)/s, ''))
}

/** What a case has left: processes, sockets, files. */
export async function leftovers(marker: string, folder: string): Promise<string[]> {
  const look = (): string[] => [
    ...processesWith(marker),
    ...readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .filter((line) => line.includes(folder) || line.includes(marker))
      .map((line) => `socket ${line.split(' ').at(-1)}`),
    ...readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => `file ${entry.name}`),
    ...readdirSync('/dev/shm')
      .filter((name) => name.includes('shoal'))
      .map((name) => `shared memory ${name}`),
  ]
  const end = performance.now() + waitLimit
  for (;;) {
    const left = look()
    if (left.length === 0 || performance.now() > end) return left
    await sleep(50)
  }
}
