import { type OptionKeys, outOfRange, requireInteger, requireOptions, type StreamArgument } from '@shoal/types'
import { type Dimensions, dimensionAt } from '../../core/attributes/dimensions.js'

/** Configuration of a kernel launch. */
export interface LaunchConfig {
  /** Number of blocks in the grid. */
  readonly grid: Dimensions
  /** Number of threads per block. */
  readonly block: Dimensions
  /** Dynamic shared memory per block in bytes. Above 48 KiB Shoal raises the kernel's limit. Default: 0. */
  readonly sharedMemory?: number | undefined
  /** The stream of the launch. Default: the default stream of the kernel's device. */
  readonly stream?: StreamArgument | undefined
}

const configKeys: OptionKeys<LaunchConfig> = { grid: true, block: true, sharedMemory: true, stream: true }

/** CUDA's limits for every device. A kernel's own limits are lower. */
const gridLimits = [2 ** 31 - 1, 65535, 65535] as const
const blockLimits = [1024, 1024, 64] as const

/** Checked sizes of a launch, updated in place so that a launch allocates nothing. */
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
  /** The last checked value, if it was a number, because programs usually repeat it. NaN never equals another value. */
  grid: Dimensions = Number.NaN
  block: Dimensions = Number.NaN

  constructor(api: string, maxThreadsPerBlock: number) {
    this.api = api
    this.maxThreadsPerBlock = maxThreadsPerBlock
  }

  /**
   * Stores the sizes and returns the stream. Rare cases are in separate functions, so that V8 inlines a whole launch.
   * @throws TypeError or RangeError naming the wrong key
   */
  set(config: LaunchConfig): StreamArgument | undefined {
    let grid: Dimensions, block: Dimensions, sharedMemory: number | undefined, stream: StreamArgument | undefined
    try {
      ;({ grid, block, sharedMemory, stream } = config)
    } catch (error) {
      refuse(config, this.api)
      throw error
    }
    // The checks of requireOptions, which reports the errors. Once the properties are read, these checks take V8 a
    // tenth of the time. Counting the keys instead of comparing them halves that: if their number matches the values,
    // no other key exists.
    if (Object.getPrototypeOf(config) !== Object.prototype) refuse(config, this.api)
    let keys = 2
    if (sharedMemory !== undefined) keys += 1
    if (stream !== undefined) keys += 1
    for (const _ in config) keys -= 1
    if (keys !== 0) checkKeys(config, this.api)
    if (grid !== this.grid) setGrid(this, grid, config)
    if (block !== this.block) setBlock(this, block, config)
    this.sharedMemory = sharedMemory === undefined ? 0 : requireBytes(sharedMemory, this.api)
    return stream
  }
}

/** Refuses options, unless they are a plain object of another realm. */
function refuse(config: LaunchConfig, api: string): void {
  requireOptions<LaunchConfig>(config, api, configKeys, 'config')
}

/** A fast check for a key without a value, as in `{ grid, block, stream: undefined }`. */
function checkKeys(config: LaunchConfig, api: string): void {
  for (const key in config) {
    if (key !== 'grid' && key !== 'block' && key !== 'stream' && key !== 'sharedMemory') refuse(config, api)
  }
}

function setGrid(shape: LaunchShape, grid: Dimensions, config: LaunchConfig): void {
  const { api } = shape
  // Another key may exist instead.
  if (grid === undefined) checkKeys(config, api)
  shape.grid = Number.NaN
  shape.gridX = dimensionAt(grid, 0, api, 'grid', gridLimits)
  shape.gridY = dimensionAt(grid, 1, api, 'grid', gridLimits)
  shape.gridZ = dimensionAt(grid, 2, api, 'grid', gridLimits)
  if (typeof grid === 'number') shape.grid = grid
}

function setBlock(shape: LaunchShape, block: Dimensions, config: LaunchConfig): void {
  const { api, maxThreadsPerBlock } = shape
  if (block === undefined) checkKeys(config, api)
  shape.block = Number.NaN
  shape.blockX = dimensionAt(block, 0, api, 'block', blockLimits)
  shape.blockY = dimensionAt(block, 1, api, 'block', blockLimits)
  shape.blockZ = dimensionAt(block, 2, api, 'block', blockLimits)
  const threads = shape.blockX * shape.blockY * shape.blockZ
  if (threads > maxThreadsPerBlock) {
    const expected = `at most ${maxThreadsPerBlock} threads, which is what this kernel can have`
    throw outOfRange(api, 'block', expected, threads)
  }
  if (typeof block === 'number') shape.block = block
}

function requireBytes(byteLength: number, api: string): number {
  return requireInteger(byteLength, api, 'sharedMemory', 0, 2 ** 31 - 1)
}
