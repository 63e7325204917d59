import { Worker } from 'node:worker_threads'
import { Random } from '@shoal/conformance'

/** Starts and terminates workers at random steps of the main thread. */
export class RandomWorkers {
  readonly #random: Random
  readonly #onFailure: (text: string) => void
  readonly #terminations: Promise<unknown>[] = []
  #worker: Worker | undefined
  /** Steps until the next worker starts or the current one is terminated. */
  #left = 20

  constructor(seed: number, onFailure: (text: string) => void) {
    this.#random = new Random(seed)
    this.#onFailure = onFailure
  }

  /** Number of terminated workers. */
  get terminated(): number {
    return this.#terminations.length
  }

  step(): void {
    this.#left -= 1
    if (this.#left > 0) return
    if (this.#worker === undefined) {
      const worker = new Worker(new URL('worker.js', import.meta.url), { workerData: { seed: this.#random.word() } })
      worker.on('message', this.#onFailure)
      worker.on('error', (error) => this.#onFailure(`a worker ended with ${error.stack ?? error.message}`))
      this.#worker = worker
      // Some workers end before they have started.
      this.#left = this.#random.integer(0, 3) === 0 ? this.#random.integer(1, 50) : this.#random.integer(300, 3000)
    } else {
      this.#terminations.push(this.#worker.terminate())
      this.#worker = undefined
      this.#left = this.#random.integer(1, 100)
    }
  }

  async end(): Promise<void> {
    await this.#worker?.terminate()
    await Promise.all(this.#terminations)
  }
}
