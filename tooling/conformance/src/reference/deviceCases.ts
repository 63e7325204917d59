import { caseData } from './caseData.js'
import type { DeviceCase, Named, PoolCase, SplitCase, SplitStep, StreamCase } from './cases.js'

export function deviceCases(attributes: readonly string[], limits: readonly string[]): readonly (DeviceCase & Named)[] {
  return [{ part: 'device', name: 'attributes and limits of the device', attributes, limits }]
}

const flags = [
  {},
  { ignoreCoscheduling: true },
  { maxPotentialClusterSize: true },
  { ignoreCoscheduling: true, maxPotentialClusterSize: true },
] as const
const sizes = [1, 2, 3, 7, 8, 9, 16, 24, 33, 64, 66, 100, 131, 132]
const part = 'split'

/**
 * Splits with every flag and all kinds of sizes, into a given number of groups or as many as possible. Some of the
 * groups are split again.
 */
export const splitCases: readonly (SplitCase & Named)[] = [
  ...flags.flatMap((flag) =>
    sizes.flatMap((multiprocessors) =>
      [{}, { groups: 1 }, { groups: 3 }].map((groups) => split([{ multiprocessors, ...groups, ...flag }])),
    ),
  ),
  split([{ multiprocessors: 64 }, { multiprocessors: 16 }, { multiprocessors: 8 }]),
  split([{ multiprocessors: 2 }, { multiprocessors: 1 }]),
  split([
    { multiprocessors: 32, groups: 2 },
    { multiprocessors: 8, ignoreCoscheduling: true },
  ]),
]

function split(steps: readonly SplitStep[]): SplitCase & Named {
  const name = steps.map((step) => JSON.stringify(step)).join(', then ')
  return {
    part,
    name,
    steps,
    green: steps.length > 1 || isShown(steps),
    kinds: steps.length > 1 ? [0, 1, 2, 1000, 10_000, -1] : [],
  }
}

/** Selects the few splits that create green contexts, because creating one is slow. */
function isShown([step]: readonly SplitStep[]): boolean {
  return step?.groups === undefined && [2, 8, 33].includes(step?.multiprocessors ?? 0)
}

const stream = { part: 'stream', nonBlocking: true, priority: 0, attributes: {} } as const
const pool = { part: 'pool', set: {}, allocations: [1, 1000, 5 * 2 ** 20], trimTo: 0 } as const

export const streamCases: readonly (StreamCase & Named)[] = caseData.streams.map((given) => ({
  ...stream,
  name: `attributes ${JSON.stringify(given.attributes)}`,
  ...given,
}))
export const poolCases: readonly (PoolCase & Named)[] = caseData.pools.map((given) => ({ ...pool, ...given }))
