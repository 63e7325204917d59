import type { CUfunction } from '@shoal/cuda-sys/driver'
import {
  type OptionKeys,
  optionalBoolean,
  propertyOf,
  requireAddress,
  requireCount,
  requireInteger,
  requireOptions,
  wrongType,
} from '@shoal/types'
import { type Context, contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { scratch } from '../../core/native.js'

/** A kernel by its handle: a `CUfunction` or `CUkernel` for libcuda, a `cudaKernel_t` for libcudart. */
export interface KernelHandle {
  /** @throws DisposedError */
  readonly handle: bigint
}

/** What one block of the kernel needs. */
export interface OccupancyOptions {
  /** Bytes of dynamic shared memory a block. Default: 0. */
  readonly sharedMemory?: number | undefined
  /** Leaves out what devices do to caching where a kernel is close to its limits. Default: false. */
  readonly disableCachingOverride?: boolean | undefined
}

export const occupancyKeys: OptionKeys<OccupancyOptions> = { sharedMemory: true, disableCachingOverride: true }

const mostThreads = 1024

/**
 * How many blocks of the kernel run on one multiprocessor at once
 * (`cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`, `cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`).
 * @param owner where the kernel is loaded.
 * @param blockSize threads in a block, from 1 to 1024.
 * @throws TypeError, RangeError, DisposedError, StatusError
 *
 * @example
 * const blocks = maxActiveBlocks(device, axpy, 256)
 * const grid = blocks * device.attribute('MULTIPROCESSOR_COUNT') // all that run at once
 */
export function maxActiveBlocks(
  owner: DeviceOrContext,
  kernel: KernelHandle | bigint,
  blockSize: number,
  options: OccupancyOptions = {},
): number {
  return activeBlocksOf(owner, kernel, blockSize, options, 'maxActiveBlocks')
}

/** The same for another function, which errors name. */
export function activeBlocksOf(
  owner: DeviceOrContext,
  kernel: KernelHandle | bigint,
  blockSize: number,
  options: OccupancyOptions,
  api: string,
): number {
  const context = contextOf(owner, api)
  const threads = requireInteger(blockSize, api, 'blockSize', 1, mostThreads)
  requireOptions(options, api, occupancyKeys)
  return activeBlocks(context, handleOf(kernel, api), threads, sharedMemoryOf(options, api), flagsOf(options, api))
}

/**
 * Bytes of dynamic shared memory that a block can have where `blockCount` blocks are to run on one multiprocessor at
 * once (`cuOccupancyAvailableDynamicSMemPerBlock`, `cudaOccupancyAvailableDynamicSMemPerBlock`).
 * @throws TypeError, RangeError, DisposedError, StatusError
 */
export function availableSharedMemory(
  owner: DeviceOrContext,
  kernel: KernelHandle | bigint,
  blockCount: number,
  blockSize: number,
): number {
  return availableSharedMemoryOf(owner, kernel, blockCount, blockSize, 'availableSharedMemory')
}

/** The same for another function, which errors name. */
export function availableSharedMemoryOf(
  owner: DeviceOrContext,
  kernel: KernelHandle | bigint,
  blockCount: number,
  blockSize: number,
  api: string,
): number {
  const context = contextOf(owner, api)
  const blocks = requireInteger(blockCount, api, 'blockCount', 1, 0x7fff_ffff)
  const threads = requireInteger(blockSize, api, 'blockSize', 1, mostThreads)
  const out = scratch()
  context._call('occupancyAvailableDynamicSMemPerBlock', out, handleOf(kernel, api), blocks, threads)
  return Number(out.u64[0])
}

/** The block size of a launch, and how many blocks of it fill the device. */
export interface PotentialBlockSize {
  /** Threads in a block. */
  readonly blockSize: number
  /** Blocks that run on the whole device at once. */
  readonly minGridSize: number
}

/** What the search for a block size may look at. */
export interface BlockSizeOptions extends Omit<OccupancyOptions, 'sharedMemory'> {
  /** Bytes of dynamic shared memory a block, or how to get them from its size. Default: 0. */
  readonly sharedMemory?: number | ((blockSize: number) => number) | undefined
  /** The largest block to look at. Default: the most the kernel can have. */
  readonly blockSizeLimit?: number | undefined
}

/** What the search has to know of a kernel and its device. */
export interface BlockSizeFacts {
  readonly maxThreadsPerBlock: number
  readonly warpSize: number
  readonly multiprocessors: number
  readonly threadsPerMultiprocessor: number
}

/**
 * The block size with which most threads of a multiprocessor are busy, the largest where several do equally. The search
 * of `cuOccupancyMaxPotentialBlockSize`, which libcudart has as a template in a header alone: block sizes in steps of a
 * warp, each asked of `maxActiveBlocks`.
 */
export function searchBlockSize(
  context: Context,
  kernel: bigint,
  facts: BlockSizeFacts,
  options: BlockSizeOptions,
  api: string,
): PotentialBlockSize {
  requireOptions<BlockSizeOptions>(options, api, { ...occupancyKeys, blockSizeLimit: true })
  const { blockSizeLimit, sharedMemory = 0 } = options
  const { maxThreadsPerBlock, warpSize, multiprocessors, threadsPerMultiprocessor } = facts
  const limit = Math.min(
    maxThreadsPerBlock,
    blockSizeLimit === undefined ? mostThreads : requireInteger(blockSizeLimit, api, 'blockSizeLimit', 1),
  )
  const flags = flagsOf(options, api)
  let best = { blockSize: 0, blocks: 0 }
  for (let rounded = Math.ceil(limit / warpSize) * warpSize; rounded > 0; rounded -= warpSize) {
    const size = Math.min(rounded, limit)
    const bytes = typeof sharedMemory === 'function' ? sharedMemory(size) : sharedMemory
    const blocks = activeBlocks(context, kernel, size, requireCount(bytes, api, 'sharedMemory'), flags)
    if (size * blocks > best.blockSize * best.blocks) best = { blockSize: size, blocks }
    if (best.blockSize * best.blocks >= threadsPerMultiprocessor) break
  }
  return { blockSize: best.blockSize, minGridSize: best.blocks * multiprocessors }
}

function activeBlocks(context: Context, kernel: bigint, threads: number, sharedMemory: number, flags: number): number {
  const out = scratch()
  const handle = kernel as CUfunction
  context._call('occupancyMaxActiveBlocksPerMultiprocessorWithFlags', out, handle, threads, sharedMemory, flags)
  return out.i32[0] as number
}

function sharedMemoryOf(options: OccupancyOptions, api: string): number {
  const { sharedMemory = 0 } = options
  return requireCount(sharedMemory, api, 'sharedMemory')
}

/** `CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE`, the same number in libcudart. */
function flagsOf(options: Pick<OccupancyOptions, 'disableCachingOverride'>, api: string): number {
  return optionalBoolean(options.disableCachingOverride, api, 'disableCachingOverride', false) ? 1 : 0
}

/** The handle of a kernel. @throws TypeError, RangeError, DisposedError */
export function handleOf(kernel: KernelHandle | bigint, api: string): CUfunction {
  const handle = typeof kernel === 'object' ? propertyOf(kernel, 'handle') : kernel
  if (typeof handle !== 'bigint') throw wrongType(api, 'kernel', 'a kernel or its handle', kernel)
  return requireAddress(handle, api, 'kernel') as CUfunction
}
