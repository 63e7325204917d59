import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import type { Placement } from './placements.js'
import { numbersIn } from './processors.js'

/** The main thread of a process, bound to a processor that no other thread of the process uses. */
export class MainThread {
  readonly #name: string
  readonly #pid: number
  readonly #placement: Placement
  /** Other threads that were already bound to other processors. */
  readonly #moved = new Set<string>()

  constructor(name: string, pid: number, placement: Placement) {
    this.#name = name
    this.#pid = pid
    this.#placement = placement
  }

  /**
   * Binds the main thread to its processor, and all other threads to other processors. A new thread inherits the
   * processors of the thread that starts it, and libraries bind threads as well.
   */
  bind(): void {
    const { candidates, mainThread, others } = this.#placement
    if (mainThread === undefined) return
    const main = String(this.#pid)
    if (this.#processorsOf(main)?.join() !== String(mainThread))
      this.#setProcessors(main, 'the main thread', [mainThread])
    for (const thread of this.#threads()) {
      if (thread === main || this.#moved.has(thread)) continue
      const isInTheWay = this.#processorsOf(thread)?.some((processor) => candidates.includes(processor))
      if (isInTheWay === true) this.#setProcessors(thread, 'a thread', others)
      this.#moved.add(thread)
    }
  }

  #threads(): string[] {
    try {
      return readdirSync(`/proc/${this.#pid}/task`)
    } catch {
      // The process has ended. The next request to it fails.
      return []
    }
  }

  /** Undefined if the thread has ended. */
  #processorsOf(thread: string): number[] | undefined {
    try {
      const status = readFileSync(`/proc/${this.#pid}/task/${thread}/status`, 'utf8')
      return numbersIn(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? '')
    } catch {
      return undefined
    }
  }

  #setProcessors(thread: string, what: string, processors: readonly number[]): void {
    const list = processors.join(',')
    const { status, stderr, error } = spawnSync('taskset', ['-cp', list, thread], { encoding: 'utf8' })
    if (status === 0 || this.#processorsOf(thread) === undefined) return
    const words = error?.message ?? stderr.trim()
    throw new Error(`cannot bind ${what} of ${this.#name} (${thread}) to processor ${list}: ${words}`)
  }
}
