import type { World } from './world.js'

/** One action of a sequence. It picks its operands with `world.random` only, so that a seed repeats it. */
export interface Operation {
  readonly name: string
  /** How often the operation is chosen, relative to the other operations. */
  readonly weight: number
  /** Runs the operation and returns a short description. Returns `undefined` if it found no operands. */
  run(world: World): string | undefined | Promise<string | undefined>
}

/** A result that differs from the model. */
export class Mismatch extends Error {}
