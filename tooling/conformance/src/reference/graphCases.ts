import type { GraphCase, LaunchAttributeInputs, Named, NodeStep, StreamStep } from './cases.js'
import { kernels } from './ptx.js'

const memory = { a: 256, b: 256, words: 16 }
const common = { part: 'graph', ptx: kernels, memory } as const

/** No two bytes alike, as packages fill with the narrowest element that does. */
const value = 0x01020304

function kernel(attributes?: LaunchAttributeInputs, more: object = {}) {
  const shape = { grid: [4], block: [16], args: [['a'], 60, 3] } as const
  return { do: 'kernel', kernel: 'plain', ...shape, ...(attributes && { attributes }), ...more } as const
}

const words = {
  do: 'words',
  operations: [
    { operation: 'write', memory: ['words'], bits: 32, value: 7, condition: 'geq' },
    { operation: 'wait', memory: ['words'], bits: 32, value: 5, condition: 'geq' },
    { operation: 'write', memory: ['words', 8], bits: 64, value: 2 ** 40, condition: 'geq' },
    { operation: 'wait', memory: ['words', 8], bits: 64, value: 2 ** 40, condition: 'eq' },
  ],
} as const

const byHand: Readonly<Record<string, readonly NodeStep[]>> = {
  empty: [],
  'every kind of node': [
    { do: 'fill', to: ['a'], value, bits: 32, count: 64 },
    { do: 'fill', to: ['b', 3], value: 0x5a, bits: 8, count: 201 },
    { ...kernel(), after: [0] },
    { do: 'copy', to: ['b', 32], from: ['a', 64], bytes: 128, after: [1, 2] },
    { do: 'host', after: [3] },
    { do: 'empty', after: [3, 4] },
    { do: 'record', event: 'one', after: [5] },
    { do: 'wait', event: 'one', after: [6] },
    { ...words, after: [7] },
    { do: 'fill', to: ['a', 130], value: 0x0102, bits: 16, count: 17, after: [7] },
  ],
  'memory of the graph': [
    { do: 'allocate', name: 'own', bytes: 1000 },
    { do: 'fill', to: ['own'], value, bits: 32, count: 64, after: [0] },
    { do: 'copy', to: ['a'], from: ['own'], bytes: 256, after: [1] },
    { do: 'free', name: 'own', after: [2] },
  ],
  'a graph in a graph in a graph': [
    kernel(),
    {
      do: 'graph',
      steps: [
        { do: 'fill', to: ['b'], value, bits: 32, count: 64 },
        { do: 'graph', steps: [kernel(), { do: 'host', after: [0] }], after: [0] },
      ],
      after: [0],
    },
    { do: 'graph', steps: [], after: [0, 1] },
  ],
  'conditions: if, if and else': [
    { do: 'conditional', type: 'if', value: 1, bodies: [[{ do: 'fill', to: ['a'], value, bits: 32, count: 64 }]] },
    {
      do: 'conditional',
      type: 'if',
      value: 0,
      bodies: [[{ do: 'fill', to: ['a'], value: 9, bits: 32, count: 9 }], [kernel(), { do: 'empty', after: [0] }]],
      after: [0],
    },
  ],
  'conditions: switch': [
    {
      do: 'conditional',
      type: 'switch',
      value: 2,
      bodies: [
        [],
        [kernel()],
        [
          { do: 'copy', to: ['a'], from: ['b'], bytes: 64 },
          { ...kernel(), after: [0] },
        ],
      ],
    },
    { do: 'conditional', type: 'switch', value: 9, bodies: [[kernel()]], after: [0] },
  ],
  'conditions: while, not taken': [{ do: 'conditional', type: 'while', value: 0, bodies: [[kernel()]] }],
  'kernels of other shapes': [
    kernel(undefined, { grid: [2, 3, 4], block: [8, 4, 2] }),
    kernel(undefined, { after: [0], kernel: 'bounded', block: [128, 2], grid: [1, 1, 65535] }),
    kernel(undefined, { after: [1], kernel: 'exact', block: [64], sharedMemory: 4096 }),
    kernel(undefined, { after: [2], sharedMemory: 100_000 }),
    kernel(undefined, { after: [3], kernel: 'shared', sharedMemory: 1024 }),
    kernel(undefined, { after: [4], kernel: 'clustered' }),
  ],
  'a conditional node in a conditional node': [
    {
      do: 'conditional',
      type: 'if',
      value: 1,
      bodies: [[kernel(), { do: 'conditional', type: 'if', value: 1, bodies: [[kernel()]], after: [0] }]],
    },
  ],
  'a host function for a condition’s body': [{ do: 'conditional', type: 'if', value: 1, bodies: [[{ do: 'host' }]] }],
}

/** What each launch attribute becomes in a node that is added and in one that is captured. */
const attributes: Readonly<Record<string, LaunchAttributeInputs>> = {
  accessPolicyWindow: {
    accessPolicyWindow: { memory: ['b', 16], bytes: 128, hitRatio: 0.75, hit: 'persisting', miss: 'streaming' },
  },
  'another window': {
    accessPolicyWindow: { memory: ['a'], bytes: 64, hitRatio: 1, hit: 'streaming', miss: 'normal' },
  },
  cooperative: { cooperative: true },
  'not cooperative': { cooperative: false },
  clusterDimension: { clusterDimension: [2, 1, 1] },
  'a cluster of four': { clusterDimension: [4], clusterSchedulingPolicy: 'load-balancing' },
  'a spread cluster': { clusterDimension: [2], clusterSchedulingPolicy: 'spread' },
  'a cluster that the grid is no multiple of': { clusterDimension: [3] },
  'a cluster that is too large': { clusterDimension: [32] },
  programmaticStreamSerialization: { programmaticStreamSerialization: true },
  programmaticEvent: { programmaticEvent: { event: 'one', triggerAtBlockStart: true } },
  priority: { priority: -1 },
  'a priority that streams lack': { priority: -100 },
  memorySynchronizationDomainMap: { memorySynchronizationDomainMap: { default: 1, remote: 0 } },
  'a domain that is none': { memorySynchronizationDomainMap: { default: 200, remote: 0 } },
  memorySynchronizationDomain: { memorySynchronizationDomain: 'remote' },
  preferredClusterDimension: { clusterDimension: [2], preferredClusterDimension: [4] },
  launchCompletionEvent: { launchCompletionEvent: 'two' },
  sharedMemoryCarveout: { sharedMemoryCarveout: 37 },
  'the largest carveout': { sharedMemoryCarveout: 100 },
  nvlinkUtilCentricScheduling: { nvlinkUtilCentricScheduling: true },
  'several attributes': { clusterDimension: [2, 1, 1], priority: -1, memorySynchronizationDomain: 'remote' },
}

const captured: Readonly<Record<string, readonly StreamStep[]>> = {
  nothing: [],
  'a fork and a join': [
    { do: 'fill', to: ['a'], value, bits: 32, count: 64 },
    { do: 'follow', stream: 1, behind: 0 },
    kernel(),
    { ...kernel(undefined, { args: [['b'], 30, 5] }), stream: 1 },
    { do: 'fill', to: ['b', 128], value: 0x0304, bits: 16, count: 20, stream: 1 },
    { do: 'follow', stream: 0, behind: 1 },
    { do: 'copy', to: ['a', 8], from: ['b'], bytes: 100 },
    { do: 'host' },
  ],
  'fills of all widths': [
    { do: 'fill', to: ['a', 1], value: 0x77, bits: 8, count: 3 },
    { do: 'fill', to: ['a', 2], value: 0x7788, bits: 16, count: 5 },
    { do: 'fill', to: ['a', 16], value, bits: 32, count: 1 },
  ],
  'words that are written and waited for': [words],
  'memory of the stream': [
    { do: 'allocate', name: 'own', bytes: 1000 },
    { do: 'fill', to: ['own'], value, bits: 32, count: 64 },
    { do: 'copy', to: ['a'], from: ['own'], bytes: 256 },
    { do: 'free', name: 'own' },
  ],
  'a fork without a join': [
    { do: 'fill', to: ['a'], value, bits: 32, count: 64 },
    { do: 'follow', stream: 1, behind: 0 },
    { ...kernel(), stream: 1 },
  ],
}

export const graphCases: readonly (GraphCase & Named)[] = [
  ...Object.entries(byHand).map(([name, steps]) => ({
    ...common,
    name: `${name}, by hand`,
    build: 'by hand' as const,
    steps,
  })),
  ...Object.entries(captured).map(([name, steps]) => ({
    ...common,
    name: `${name}, captured`,
    build: 'captured' as const,
    steps,
  })),
  ...Object.entries(attributes).flatMap(([name, given]) =>
    (['by hand', 'captured'] as const).map((build) => ({
      ...common,
      name: `a kernel with attributes: ${name}, ${build}`,
      build,
      steps: [kernel(given)],
    })),
  ),
]
