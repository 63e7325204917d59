import type { World } from './world.js'

/** One thing that can be done. It picks its operands by `world.random` alone, so that a seed repeats it. */
export interface Operation {
  readonly name: string
  /** How often it is chosen, against the others. */
  readonly weight: number
  /** Says in a few words what it did; `undefined` when there was nothing to do it with. */
  run(world: World): string | undefined | Promise<string | undefined>
}

/** Something is not as the model says. */
export class Mismatch extends Error {}
