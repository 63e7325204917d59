import { type OptionKeys, outOfRange, requireInteger, requireOptions, type StreamArgument } from '@shoal/types'
import { type Dimensions, dimensionAt } from '../../core/attributes/dimensions.js'

/** How a kernel is launched. */
export interface LaunchConfig {
  /** Blocks in the grid. */
  readonly grid: Dimensions
  /** Threads in a block. */
  readonly block: Dimensions
  /** Bytes of dynamic shared memory a block; above 48 KiB the kernel is opted in. Default: 0. */
  readonly sharedMemory?: number | undefined
  /** Default: the default stream of the kernel's device. */
  readonly stream?: StreamArgument | undefined
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
   * Takes over the sizes and gives the stream. What is rarely needed stands in functions of its own: V8 then makes one
   * piece of code of all a launch does.
   * @throws TypeError or RangeError naming the key that is wrong.
   */
  set(config: LaunchConfig): StreamArgument | undefined {
    let grid: Dimensions, block: Dimensions, sharedMemory: number | undefined, stream: StreamArgument | undefined
    try {
      ;({ grid, block, sharedMemory, stream } = config)
    } catch (error) {
      refuse(config, this.api)
      throw error
    }
    // What requireOptions asks for, which is left to it where something is wrong. After the properties were read it
    // takes V8 a tenth of the time, and half of that where keys are counted and not compared: as many as there are
    // values are no others.
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

/** Unless it is a plain object of another realm. */
function refuse(config: LaunchConfig, api: string): void {
  requireOptions<LaunchConfig>(config, api, configKeys, 'config')
}

/** Quick where a key has no value, as in `{ grid, block, stream: undefined }`. */
function checkKeys(config: LaunchConfig, api: string): void {
  for (const key in config) {
    if (key !== 'grid' && key !== 'block' && key !== 'stream' && key !== 'sharedMemory') refuse(config, api)
  }
}

function setGrid(shape: LaunchShape, grid: Dimensions, config: LaunchConfig): void {
  const { api } = shape
  // There may be another key in its place.
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
