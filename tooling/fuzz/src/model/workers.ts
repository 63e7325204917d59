import { Worker } from 'node:worker_threads'
import { Random } from '@shoal/conformance'

/** Workers that come and are terminated at random, counted in steps of the main thread. */
export class RandomWorkers {
  readonly #random: Random
  readonly #onFailure: (text: string) => void
  readonly #terminations: Promise<unknown>[] = []
  #worker: Worker | undefined
  /** Steps until the next one comes, or goes. */
  #left = 20

  constructor(seed: number, onFailure: (text: string) => void) {
    this.#random = new Random(seed)
    this.#onFailure = onFailure
  }

  /** How many were terminated. */
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
      // Some are gone before they have begun.
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
