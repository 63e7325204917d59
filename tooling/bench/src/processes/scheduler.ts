import type { ProcessGroup } from './processGroup.js'

/** Lets only one process group run at a time, because threads of NCCL and NVSHMEM poll even without work. */
export class Scheduler {
  #running: ProcessGroup | undefined

  /** Suspends the running group and resumes this one. */
  run(group: ProcessGroup): void {
    if (this.#running === group) return
    this.#running?.suspend()
    group.resume()
    this.#running = group
  }

  /** Suspends the running group. */
  suspendAll(): void {
    this.#running?.suspend()
    this.#running = undefined
  }

  /** Suspends a group that was just started or is about to be closed. */
  suspend(group: ProcessGroup): void {
    if (this.#running === group) this.#running = undefined
    group.suspend()
  }
}
