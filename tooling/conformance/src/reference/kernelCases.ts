import type { KernelCase, LaunchAttributeInputs, Named, OccupancyCase } from './cases.js'
import { kernelNames, kernels } from './ptx.js'

const part = 'kernel'

/** Reads the attributes of kernels by default and after setting valid and invalid values. */
export function kernelCases(attributes: readonly string[]): readonly (KernelCase & Named)[] {
  const common = { part, ptx: kernels, attributes } as const
  return [
    ...kernelNames.map((kernel) => ({ ...common, name: `attributes of ${kernel}`, kernel, set: {} })),
    ...[
      { MAX_DYNAMIC_SHARED_SIZE_BYTES: 65_536, PREFERRED_SHARED_MEMORY_CARVEOUT: 50 },
      { NON_PORTABLE_CLUSTER_SIZE_ALLOWED: 1, CLUSTER_SCHEDULING_POLICY_PREFERENCE: 1 },
      { MAX_DYNAMIC_SHARED_SIZE_BYTES: 10_000_000 },
      { PREFERRED_SHARED_MEMORY_CARVEOUT: 101 },
      { MAX_DYNAMIC_SHARED_SIZE_BYTES: -1 },
      { CLUSTER_SCHEDULING_POLICY_PREFERENCE: 77 },
      { REQUIRED_CLUSTER_WIDTH: 2 },
      { NUM_REGS: 3 },
      { MAX_DYNAMIC_SHARED_SIZE_BYTES: 0, PREFERRED_SHARED_MEMORY_CARVEOUT: -1 },
    ].map((set) => ({
      ...common,
      name: `attributes of a kernel once there is ${JSON.stringify(set)}`,
      kernel: 'plain',
      set: set as Readonly<Record<string, number>>,
    })),
  ]
}

/** The most threads in a block of a kernel, if its directives allow fewer than 1024. */
const mostThreads: Readonly<Record<string, number>> = { bounded: 256, exact: 64 }

const cluster = (grid: number, attributes: LaunchAttributeInputs) => ({ grid, attributes })

/** Every kernel with blocks from one thread to the maximum, shared memory up to the maximum, and clusters. */
export const occupancyCases: readonly (OccupancyCase & Named)[] = kernelNames.flatMap((kernel) =>
  [1, 31, 64, 128, 255, 512, 1024].flatMap((block) =>
    [0, 1000, 40_000, 100_000].map((sharedMemory, index) => ({
      part: 'occupancy' as const,
      name: `occupancy of ${kernel}, ${block} threads, ${sharedMemory} bytes`,
      ptx: kernels,
      ...(block > (mostThreads[kernel] ?? 1024) ? { stricter: 'no launch has such blocks' } : {}),
      kernel,
      block,
      sharedMemory,
      disableCachingOverride: index === 1,
      blockCounts: [1, 2, 7, 32, 33],
      ...(index === 2 ? { limit: 200 } : {}),
      clusters: [
        cluster(64, { clusterDimension: [2] }),
        cluster(64, { clusterDimension: [8] }),
        cluster(64, { clusterDimension: [16] }),
        cluster(7, { clusterDimension: [2] }),
        cluster(64, {}),
      ],
    })),
  ),
)
