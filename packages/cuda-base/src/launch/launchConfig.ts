import { type OptionKeys, outOfRange, requireInteger, requireOptions, type StreamLike } from '@shoal/types'
import { type Dimensions, dimensionAt } from '../attributes/dimensions.js'

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
    // What requireOptions asks for, which is left to it where something is wrong. After the properties were read it takes V8 a
    // tenth of the time, and half of that where keys are counted and not compared: as many as there are values are no others.
    if (Object.getPrototypeOf(config) !== Object.prototype) this.#refuse(config)
    let keys = 0
    for (const _ in config) keys += 1
    if (keys !== 2 + (sharedMemory === undefined ? 0 : 1) + (stream === undefined ? 0 : 1)) this.#checkKeys(config)
    if (grid !== this.grid) this.#setGrid(grid, config)
    if (block !== this.block) this.#setBlock(block, config)
    this.sharedMemory = sharedMemory === undefined ? 0 : this.#sharedBytes(sharedMemory)
    return stream
  }

  /** Unless it is a plain object of another realm. */
  #refuse(config: LaunchConfig): void {
    requireOptions<LaunchConfig>(config, this.api, configKeys, 'config')
  }

  /** Quick where a key has no value, as in `{ grid, block, stream: undefined }`. */
  #checkKeys(config: LaunchConfig): void {
    for (const key in config) {
      if (key !== 'grid' && key !== 'block' && key !== 'stream' && key !== 'sharedMemory') this.#refuse(config)
    }
  }

  #setGrid(grid: Dimensions, config: LaunchConfig): void {
    // There may be another key in its place.
    if (grid === undefined) this.#checkKeys(config)
    this.grid = Number.NaN
    this.gridX = dimensionAt(grid, 0, this.api, 'grid', gridLimits)
    this.gridY = dimensionAt(grid, 1, this.api, 'grid', gridLimits)
    this.gridZ = dimensionAt(grid, 2, this.api, 'grid', gridLimits)
    if (typeof grid === 'number') this.grid = grid
  }

  #setBlock(block: Dimensions, config: LaunchConfig): void {
    if (block === undefined) this.#checkKeys(config)
    this.block = Number.NaN
    this.blockX = dimensionAt(block, 0, this.api, 'block', blockLimits)
    this.blockY = dimensionAt(block, 1, this.api, 'block', blockLimits)
    this.blockZ = dimensionAt(block, 2, this.api, 'block', blockLimits)
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
