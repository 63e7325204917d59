import {
  isArray,
  type OptionKeys,
  outOfRange,
  requireInteger,
  requireOptions,
  type StreamLike,
  wrongType,
} from '@shoal/types'

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

const configKeys: OptionKeys<LaunchConfig> = { grid: true, block: true, sharedMemory: true, stream: true }

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
  readonly api: string
  readonly maxThreadsPerBlock: number
  /** What was checked last, where it is a number: a program mostly asks for the same again. NaN is never the same. */
  grid: Dimensions = Number.NaN
  block: Dimensions = Number.NaN

  constructor(api: string, maxThreadsPerBlock: number) {
    this.api = api
    this.maxThreadsPerBlock = maxThreadsPerBlock
  }

  /**
   * Takes over the sizes and gives the stream. What is rarely needed stands in methods of its own: V8 then makes one piece of
   * code of all a launch does.
   * @throws TypeError or RangeError naming the key that is wrong.
   */
  set(config: LaunchConfig): StreamLike | undefined {
    let grid: Dimensions, block: Dimensions, sharedMemory: number | undefined, stream: StreamLike | undefined
    try {
      ;({ grid, block, sharedMemory, stream } = config)
    } catch (error) {
      this.#refuse(config)
      throw error
    }
    // What requireOptions asks for, which is left to it where something is wrong. With the keys compared here, and after the
    // properties were read, it takes V8 a tenth of the time.
    if (Object.getPrototypeOf(config) !== Object.prototype) this.#refuse(config)
    for (const key in config) {
      if (key !== 'grid' && key !== 'block' && key !== 'stream' && key !== 'sharedMemory') this.#refuse(config)
    }
    if (grid !== this.grid) this.#setGrid(grid)
    if (block !== this.block) this.#setBlock(block)
    this.sharedMemory = sharedMemory === undefined ? 0 : this.#sharedBytes(sharedMemory)
    return stream
  }

  /** Unless it is a plain object of another realm. */
  #refuse(config: LaunchConfig): void {
    requireOptions<LaunchConfig>(config, this.api, configKeys, 'config')
  }

  #setGrid(grid: Dimensions): void {
    this.grid = Number.NaN
    this.gridX = size(grid, 0, this.api, 'grid', gridLimits)
    this.gridY = size(grid, 1, this.api, 'grid', gridLimits)
    this.gridZ = size(grid, 2, this.api, 'grid', gridLimits)
    if (typeof grid === 'number') this.grid = grid
  }

  #setBlock(block: Dimensions): void {
    this.block = Number.NaN
    this.blockX = size(block, 0, this.api, 'block', blockLimits)
    this.blockY = size(block, 1, this.api, 'block', blockLimits)
    this.blockZ = size(block, 2, this.api, 'block', blockLimits)
    const threads = this.blockX * this.blockY * this.blockZ
    if (threads > this.maxThreadsPerBlock) {
      const expected = `at most ${this.maxThreadsPerBlock} threads, which is what this kernel can have`
      throw outOfRange(this.api, 'block', expected, threads)
    }
    if (typeof block === 'number') this.block = block
  }

  #sharedBytes(byteLength: number): number {
    return requireInteger(byteLength, this.api, 'sharedMemory', 0, 2 ** 31 - 1)
  }
}

/** Three sizes of one, two or three, checked. @throws TypeError, RangeError */
export function dimensionsOf(
  dimensions: Dimensions,
  api: string,
  name: string,
  limits: readonly [number, number, number],
): readonly [number, number, number] {
  const axis = (index: 0 | 1 | 2): number => size(dimensions, index, api, name, limits)
  return [axis(0), axis(1), axis(2)]
}

function size(
  dimensions: Dimensions,
  axis: 0 | 1 | 2,
  api: string,
  name: string,
  limits: readonly [number, number, number],
): number {
  if (typeof dimensions === 'number') {
    return axis === 0 ? requireInteger(dimensions, api, name, 1, limits[0]) : 1
  }
  if (!isArray(dimensions) || dimensions.length < 1 || dimensions.length > 3) {
    throw wrongType(api, name, 'a number or one to three numbers', dimensions)
  }
  const value = (dimensions as readonly (number | undefined)[])[axis]
  return value === undefined && axis > 0 ? 1 : requireInteger(value, api, `${name}[${axis}]`, 1, limits[axis])
}
