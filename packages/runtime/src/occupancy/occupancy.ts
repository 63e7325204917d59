import {
  maxActiveBlocks as activeOn,
  availableSharedMemory as availableOn,
  type OccupancyOptions as BaseOptions,
  type KernelHandle,
} from '@shoal/driver/shared'
import { type DeviceOption, onlyOwner, ownerAndRest } from '../device/currentDevice.js'

/** Resources of one block, and the device of the kernel. */
export interface OccupancyOptions extends BaseOptions, DeviceOption {}

/**
 * Returns how many blocks of a kernel can run on one multiprocessor at the same time.
 *
 * Calls `cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`.
 * @param kernel a kernel, or its `cudaKernel_t`.
 * @param blockSize threads per block, from 1 to 1024.
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
 * Returns the dynamic shared memory per block in bytes, for `blockCount` blocks per multiprocessor.
 *
 * Calls `cudaOccupancyAvailableDynamicSMemPerBlock`.
 * @throws as {@link maxActiveBlocks}
 */
export function availableSharedMemory(
  kernel: KernelHandle | bigint,
  blockCount: number,
  blockSize: number,
  options: DeviceOption = {},
): number {
  return availableOn(onlyOwner(options, 'availableSharedMemory'), kernel, blockCount, blockSize)
}
