import { requireInteger } from '@shoal/cuda-base'
import { describeValue, type StreamLike } from '@shoal/types'

/** One, two or three sizes; those left out are 1. */
export type Dimensions = number | readonly [x: number, y?: number, z?: number]

/** How a kernel is launched. */
export interface LaunchConfig {
  /** Blocks in the grid. */
  readonly grid: Dimensions
  /** Threads in a block. */
  readonly block: Dimensions
  /** Bytes of dynamic shared memory a block; above 48 KiB the kernel is opted in. Default: 0. */
  readonly sharedMemory?: number | undefined
  /** Default: the default stream of the kernel's device. */
  readonly stream?: StreamLike | undefined
}

/** The limits CUDA sets for every device; those of a kernel are narrower. */
const gridLimits = [2 ** 31 - 1, 65535, 65535] as const
const blockLimits = [1024, 1024, 64] as const

/** Sizes of a launch, checked; filled in place so that a launch allocates nothing. */
export class LaunchShape {
  gridX = 1
  gridY = 1
  gridZ = 1
  blockX = 1
  blockY = 1
  blockZ = 1
  sharedMemory = 0

  /** @throws TypeError or RangeError naming the size that is wrong. */
  set(config: LaunchConfig, maxThreadsPerBlock: number): void {
    const { grid, block, sharedMemory } = config
    if (typeof grid === 'number' && (grid | 0) === grid && grid > 0) {
      this.gridX = grid
      this.gridY = 1
      this.gridZ = 1
    } else {
      this.gridX = size(grid, 0, 'grid', gridLimits)
      this.gridY = size(grid, 1, 'grid', gridLimits)
      this.gridZ = size(grid, 2, 'grid', gridLimits)
    }
    if (typeof block === 'number' && (block | 0) === block && block > 0 && block <= 1024) {
      this.blockX = block
      this.blockY = 1
      this.blockZ = 1
    } else {
      this.blockX = size(block, 0, 'block', blockLimits)
      this.blockY = size(block, 1, 'block', blockLimits)
      this.blockZ = size(block, 2, 'block', blockLimits)
    }
    const threads = this.blockX * this.blockY * this.blockZ
    if (threads > maxThreadsPerBlock) {
      throw new RangeError(`block has ${threads} threads; this kernel can have ${maxThreadsPerBlock}`)
    }
    this.sharedMemory =
      sharedMemory === undefined || sharedMemory === 0
        ? 0
        : requireInteger(sharedMemory, 'sharedMemory', 0, 2 ** 31 - 1)
  }
}

function size(
  dimensions: Dimensions,
  axis: 0 | 1 | 2,
  name: string,
  limits: readonly [number, number, number],
): number {
  if (typeof dimensions === 'number') {
    return axis === 0 ? requireInteger(dimensions, name, 1, limits[0]) : 1
  }
  if (!Array.isArray(dimensions) || dimensions.length < 1 || dimensions.length > 3) {
    throw new TypeError(`${name} must be a number or one to three numbers, not ${describeValue(dimensions)}`)
  }
  const value = (dimensions as readonly (number | undefined)[])[axis]
  return value === undefined && axis > 0 ? 1 : requireInteger(value as number, `${name}[${axis}]`, 1, limits[axis])
}
