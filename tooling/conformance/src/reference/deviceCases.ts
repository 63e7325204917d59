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
 * Every flag with groups of all kinds of sizes, in a given number and in as many as there are; and splits of what was
 * split.
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

/** A green context takes its time to make. */
function isShown([step]: readonly SplitStep[]): boolean {
  return step?.groups === undefined && [2, 8, 33].includes(step?.multiprocessors ?? 0)
}

const plain = { part: 'stream', nonBlocking: true, priority: 0, attributes: {} } as const

export const streamCases: readonly (StreamCase & Named)[] = [
  { ...plain, name: 'as it is made' },
  { ...plain, name: 'one that waits for the default stream', nonBlocking: false },
  ...[-1, -3, -5].map((priority) => ({ ...plain, name: `priority ${priority}`, priority })),
  ...(['auto', 'spin', 'yield', 'blocking'] as const).map((synchronizationPolicy) => ({
    ...plain,
    name: `waiting: ${synchronizationPolicy}`,
    synchronizationPolicy,
  })),
  ...[
    { accessPolicyWindow: { memory: ['a', 64], bytes: 100, hitRatio: 0.25, hit: 'persisting', miss: 'streaming' } },
    { accessPolicyWindow: { memory: ['a'], bytes: 256, hitRatio: 0, hit: 'streaming', miss: 'normal' } },
    { accessPolicyWindow: { memory: ['a'], bytes: 0, hitRatio: 1, hit: 'normal', miss: 'normal' } },
    { memorySynchronizationDomain: 'remote' },
    { memorySynchronizationDomainMap: { default: 1, remote: 3 } },
    { memorySynchronizationDomainMap: { default: 250, remote: 3 } },
    { priority: -2 },
    { priority: -77 },
  ].map((attributes) => ({
    ...plain,
    name: `attributes ${JSON.stringify(attributes)}`,
    attributes: attributes as StreamCase['attributes'],
  })),
]

const mebibyte = 2 ** 20
const pool = { part: 'pool', set: {}, allocations: [1, 1000, 5 * mebibyte], trimTo: 0 } as const

export const poolCases: readonly (PoolCase & Named)[] = [
  { ...pool, name: 'as it is made' },
  { ...pool, name: 'exported', exported: true },
  { ...pool, name: 'a threshold', set: { releaseThreshold: 40 * mebibyte }, allocations: [70 * mebibyte, 3] },
  { ...pool, name: 'a threshold, and some is kept', set: { releaseThreshold: 2 ** 50 }, trimTo: 2 * mebibyte },
  { ...pool, name: 'a maximum', maximumBytes: 64 * mebibyte, allocations: [40 * mebibyte, 40 * mebibyte] },
  ...(['followEventDependencies', 'opportunistic', 'internalDependencies'] as const).map((word) => ({
    ...pool,
    name: `without ${word}`,
    set: { [word]: false },
    allocations: [100],
  })),
]
