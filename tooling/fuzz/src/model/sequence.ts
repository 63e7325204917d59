/** One sequence: the seed chooses operations until there are enough. Then all objects are disposed of. */
import { Random } from '@shoal/conformance'
import type { Session } from '@shoal/nvshmem'
import { Mismatch, type Operation } from './operation.js'
import { allocators } from './operations/allocators.js'
import { batchesAndWords } from './operations/batches.js'
import { disposing } from './operations/disposing.js'
import { graphs } from './operations/graphs.js'
import { kernels } from './operations/kernels.js'
import { making } from './operations/making.js'
import { nccl } from './operations/nccl.js'
import { ncclRepeated } from './operations/ncclRepeated.js'
import { nvshmem } from './operations/nvshmem.js'
import { nvshmemGraphs } from './operations/nvshmemGraphs.js'
import { otherProcess } from './operations/otherProcess.js'
import { imports, parts } from './operations/parts.js'
import { rows } from './operations/rows.js'
import { sharedMemory } from './operations/sharedMemory.js'
import { handles, sharing } from './operations/sharing.js'
import { tensors } from './operations/tensors.js'
import { textures } from './operations/textures.js'
import { transfers } from './operations/transfers.js'
import { describe, World } from './world.js'

export const operations: readonly Operation[] = [
  ...making,
  ...transfers,
  ...allocators,
  ...rows,
  ...batchesAndWords,
  ...kernels,
  ...graphs,
  ...textures,
  ...tensors,
  ...handles,
  ...parts,
  ...disposing,
]

/** Options of a sequence. */
export interface SequenceOptions {
  readonly seed: number
  readonly steps: number
  /** Steps to make. The others are skipped. Default: all. */
  readonly only?: ReadonlySet<number> | undefined
  /** Called before each step. */
  readonly onStep?: ((step: number, name: string) => void) | undefined
  /** The NVSHMEM session, if this process has one. */
  readonly session?: Session | undefined
  /** Other threads that use the devices at the same time. */
  readonly beside?: 'the main thread' | 'workers' | undefined
}

/** The failure of a sequence. */
export class SequenceFailure extends Error {
  readonly seed: number
  readonly step: number
  readonly log: readonly string[]

  constructor(seed: number, step: number, log: readonly string[], cause: unknown) {
    super(describe(cause), { cause })
    this.name = 'SequenceFailure'
    this.seed = seed
    this.step = step
    this.log = log
  }
}

/** @throws SequenceFailure */
export async function runSequence({ seed, steps, only, onStep, session, beside }: SequenceOptions): Promise<void> {
  const world = new World(seed, session, beside !== undefined)
  // If a worker is terminated with an NCCL rank, the other ranks would wait forever.
  const apart = [...nccl, ...ncclRepeated, ...sharing, ...sharedMemory, ...imports, ...otherProcess]
  const own = beside === 'the main thread' ? [] : apart
  const chosen = [...operations, ...own, ...(session === undefined ? [] : [...nvshmem, ...nvshmemGraphs])]
  const total = chosen.reduce((sum, { weight }) => sum + weight, 0)
  const log: string[] = []
  let step = 0
  try {
    for (; step < steps; step += 1) {
      if (only !== undefined && !only.has(step)) continue
      // Each step has its own random numbers, so a skipped step does not change the choices of the others.
      const number = Math.imul(seed, 0x9e3779b1) ^ Math.imul(step + 1, 0x85ebca6b)
      world.random = new Random(number)
      world.aside = new Random(~number)
      await makeOne(world, chosen, total, step, log, onStep)
      await world.settle()
    }
    onStep?.(step, 'the end')
    world.random = new Random(seed)
    await world.end()
  } catch (error) {
    throw new SequenceFailure(seed, step, log, error)
  }
}

async function makeOne(
  world: World,
  chosen: readonly Operation[],
  total: number,
  step: number,
  log: string[],
  onStep: SequenceOptions['onStep'],
): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    let at = world.random.integer(0, total - 1)
    const operation = chosen.find(({ weight }) => {
      at -= weight
      return at < 0
    }) as Operation
    onStep?.(step, operation.name)
    let told: string | undefined
    try {
      told = await operation.run(world)
    } catch (error) {
      log.push(`${step}. ${operation.name}: ${describe(error)}`)
      throw error instanceof Mismatch ? error : new Mismatch(`${operation.name}: ${describe(error)}`, { cause: error })
    }
    if (told === undefined) continue
    log.push(`${step}. ${operation.name}: ${told}`)
    world.outcomes.set(operation.name, (world.outcomes.get(operation.name) ?? 0) + 1)
    return
  }
}
