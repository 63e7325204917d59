import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import type { Place } from './places.js'
import { numbersIn } from './processors.js'

/** The main thread of a process that has a processor for itself among the threads of that process. */
export class MainThread {
  readonly #name: string
  readonly #pid: number
  readonly #place: Place
  /** The other threads that were found to lie elsewhere, or were moved there. */
  readonly #settled = new Set<string>()

  constructor(name: string, pid: number, place: Place) {
    this.#name = name
    this.#pid = pid
    this.#place = place
  }

  /**
   * Moves it to its processor, and others away: a thread begins where the one that starts it lies, and libraries bind
   * threads too. What lies right already costs a look at it.
   */
  settle(): void {
    const { candidates, front, rest } = this.#place
    if (front === undefined) return
    const main = String(this.#pid)
    if (this.#processorsOf(main)?.join() !== String(front)) this.#bind(main, 'the main thread', [front])
    for (const thread of this.#threads()) {
      if (thread === main || this.#settled.has(thread)) continue
      const isInTheWay = this.#processorsOf(thread)?.some((processor) => candidates.includes(processor))
      if (isInTheWay === true) this.#bind(thread, 'a thread', rest)
      this.#settled.add(thread)
    }
  }

  #threads(): string[] {
    try {
      return readdirSync(`/proc/${this.#pid}/task`)
    } catch {
      // The process has ended, which shows when it is asked for something.
      return []
    }
  }

  /** Undefined where the thread has ended. */
  #processorsOf(thread: string): number[] | undefined {
    try {
      const status = readFileSync(`/proc/${this.#pid}/task/${thread}/status`, 'utf8')
      return numbersIn(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? '')
    } catch {
      return undefined
    }
  }

  #bind(thread: string, what: string, processors: readonly number[]): void {
    const list = processors.join(',')
    const { status, stderr, error } = spawnSync('taskset', ['-cp', list, thread], { encoding: 'utf8' })
    if (status === 0 || this.#processorsOf(thread) === undefined) return
    const words = error?.message ?? stderr.trim()
    throw new Error(`cannot bind ${what} of ${this.#name} (${thread}) to processor ${list}: ${words}`)
  }
}
