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
  /** Handle of the kernel. @throws DisposedError */
  readonly handle: bigint
}

/** Resources of one block of the kernel. */
export interface OccupancyOptions {
  /** Dynamic shared memory per block in bytes. Default: 0. */
  readonly sharedMemory?: number | undefined
  /** Ignores the device's caching behavior for kernels close to their limits. Default: false. */
  readonly disableCachingOverride?: boolean | undefined
}

export const occupancyKeys: OptionKeys<OccupancyOptions> = { sharedMemory: true, disableCachingOverride: true }

const mostThreads = 1024

/**
 * Returns how many blocks of a kernel run on one multiprocessor at the same time
 * (`cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`, `cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`).
 * @param owner the device or context of the kernel
 * @param blockSize threads per block, from 1 to 1024
 * @throws TypeError, RangeError, DisposedError, StatusError
 *
 * @example
 * const blocks = maxActiveBlocks(device, axpy, 256)
 * const grid = blocks * device.attribute('MULTIPROCESSOR_COUNT') // all that run at the same time
 */
export function maxActiveBlocks(
  owner: DeviceOrContext,
  kernel: KernelHandle | bigint,
  blockSize: number,
  options: OccupancyOptions = {},
): number {
  return activeBlocksOf(owner, kernel, blockSize, options, 'maxActiveBlocks')
}

/** Like {@link maxActiveBlocks}. Errors name the function `api`. */
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
 * Returns the maximum dynamic shared memory per block, in bytes, if `blockCount` blocks are to run on one
 * multiprocessor at the same time (`cuOccupancyAvailableDynamicSMemPerBlock`,
 * `cudaOccupancyAvailableDynamicSMemPerBlock`).
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

/** Like {@link availableSharedMemory}. Errors name the function `api`. */
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

/** A block size, and the number of such blocks that fill the device. */
export interface PotentialBlockSize {
  /** Threads per block. */
  readonly blockSize: number
  /** Number of blocks that run on the whole device at the same time. */
  readonly minGridSize: number
}

/** Options of the search for a block size. */
export interface BlockSizeOptions extends Omit<OccupancyOptions, 'sharedMemory'> {
  /** Dynamic shared memory per block in bytes, or a function of the block size. Default: 0. */
  readonly sharedMemory?: number | ((blockSize: number) => number) | undefined
  /** Maximum block size. Default: the kernel's maximum. */
  readonly blockSizeLimit?: number | undefined
}

/** Facts about a kernel and its device for the search. */
export interface BlockSizeFacts {
  readonly maxThreadsPerBlock: number
  readonly warpSize: number
  readonly multiprocessors: number
  readonly threadsPerMultiprocessor: number
}

/**
 * Returns the block size that keeps most threads of a multiprocessor busy, the largest of equally good ones. Searches
 * like `cuOccupancyMaxPotentialBlockSize`, which libcudart has only as a template in a header: tries block sizes in
 * steps of a warp with `maxActiveBlocks`.
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

/** `CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE`. libcudart uses the same number. */
function flagsOf(options: Pick<OccupancyOptions, 'disableCachingOverride'>, api: string): number {
  return optionalBoolean(options.disableCachingOverride, api, 'disableCachingOverride', false) ? 1 : 0
}

/** Returns the handle of a kernel. @throws TypeError, RangeError, DisposedError */
export function handleOf(kernel: KernelHandle | bigint, api: string): CUfunction {
  const handle = typeof kernel === 'object' ? propertyOf(kernel, 'handle') : kernel
  if (typeof handle !== 'bigint') throw wrongType(api, 'kernel', 'a kernel or its handle', kernel)
  return requireAddress(handle, api, 'kernel') as CUfunction
}
