import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds to wait for processes that end by themselves: the guard of `shoal run` and the rendezvous server. */
const waitLimit = 20_000

/** Returns the processes whose environment contains these words. */
function processesWith(words: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(words) && !isOver(pid)
      } catch {
        return false // the process has just ended
      }
    })
    .map((pid) => `process ${pid}`)
}

/** Returns true if the process has ended and its parent has not read its status yet. */
function isOver(pid: string): boolean {
  return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/\(.*\)/s, ''))
}

/** Returns everything that a case has left behind: processes, sockets, files. */
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
