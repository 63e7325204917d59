import type { ProcessGroup } from './processGroup.js'

/** Lets one process group run at a time: threads of NCCL and NVSHMEM poll even where there is nothing to do. */
export class Scheduler {
  #running: ProcessGroup | undefined

  /** Suspends the group that runs and resumes this one. */
  run(group: ProcessGroup): void {
    if (this.#running === group) return
    this.#running?.suspend()
    group.resume()
    this.#running = group
  }

  /** Suspends the group that runs. */
  suspendAll(): void {
    this.#running?.suspend()
    this.#running = undefined
  }

  /** Suspends a group, which has just been started or is to be closed. */
  suspend(group: ProcessGroup): void {
    if (this.#running === group) this.#running = undefined
    group.suspend()
  }
}
