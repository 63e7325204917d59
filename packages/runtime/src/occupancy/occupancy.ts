import {
  maxActiveBlocks as activeOn,
  availableSharedMemory as availableOn,
  type OccupancyOptions as BaseOptions,
  type KernelHandle,
} from '@shoal/driver/shared'
import { type DeviceOption, onlyOwner, ownerAndRest } from '../device/currentDevice.js'

/** What one block of the kernel needs, and where the kernel is loaded. */
export interface OccupancyOptions extends BaseOptions, DeviceOption {}

/**
 * How many blocks of a kernel, given by its `cudaKernel_t`, run on one multiprocessor at once
 * (`cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`).
 * @param blockSize threads in a block, from 1 to 1024.
 * @throws TypeError, RangeError, DisposedError, StatusError
 */
export function maxActiveBlocks(
  kernel: KernelHandle | bigint,
  blockSize: number,
  options: OccupancyOptions = {},
): number {
  const [owner, rest] = ownerAndRest(options, 'maxActiveBlocks')
  return activeOn(owner, kernel, blockSize, rest)
}

/**
 * Bytes of dynamic shared memory that a block can have where `blockCount` blocks are to run on one multiprocessor at
 * once (`cudaOccupancyAvailableDynamicSMemPerBlock`). @throws as {@link maxActiveBlocks}
 */
export function availableSharedMemory(
  kernel: KernelHandle | bigint,
  blockCount: number,
  blockSize: number,
  options: DeviceOption = {},
): number {
  return availableOn(onlyOwner(options, 'availableSharedMemory'), kernel, blockCount, blockSize)
}
