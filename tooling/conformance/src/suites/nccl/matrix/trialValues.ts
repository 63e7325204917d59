import { type Expected, reduced } from '../../../support/reduction/reference.js'
import { type Values, valuesOf } from '../../../support/reduction/values.js'
import type { Trial } from './trial.js'

/** The inputs of all ranks of a trial, and the expected results. All ranks of a process share one object. */
export class TrialValues {
  readonly #trial: Trial
  readonly #worldSize: number
  readonly #inputs: Values[] = []
  #reduced: Expected | undefined

  constructor(trial: Trial, worldSize: number) {
    this.#trial = trial
    this.#worldSize = worldSize
  }

  of(rank: number): Values {
    const { count } = this.#trial
    this.#inputs[rank] ??= valuesOf(this.#trial, rank, this.#worldSize, count * this.#worldSize)
    return this.#inputs[rank]
  }

  get reduced(): Expected {
    const { dtype, op } = this.#trial
    this.#reduced ??= reduced(
      dtype,
      op ?? 'sum',
      Array.from({ length: this.#worldSize }, (_, rank) => this.of(rank)),
    )
    return this.#reduced
  }
}
