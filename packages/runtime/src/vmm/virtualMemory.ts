import {
  type AllocationOptions,
  type GrowableOptions as BaseGrowableOptions,
  GrowableRange as BaseGrowableRange,
  PhysicalMemory as BasePhysicalMemory,
  allocationGranularity as baseGranularity,
  type Granularity,
  type MemoryPlace,
  type ShareableHandle,
} from '@shoal/cuda-base'
import type { DeviceOption } from '../device/currentDevice.js'
import { currentDevice, deviceOrCurrent } from '../device/currentDevice.js'

/** Where physical memory is made. */
export interface PlaceOption {
  /** A device of any package, `'host'` or `{ hostNode }`. Default: the current device. */
  readonly place?: MemoryPlace | undefined
}

/**
 * Bytes that sizes and offsets of memory of the current device, or of another place, must be a multiple of
 * (`cuMemGetAllocationGranularity`). @throws StatusError when the driver has no such memory.
 */
export function allocationGranularity(
  options: AllocationOptions & PlaceOption & { readonly granularity?: Granularity | undefined } = {},
): number {
  const { place, ...rest } = options
  return baseGranularity(place ?? currentDevice(), rest)
}

/** Memory without an address. Map it, once or several times, into an `AddressRange` to use it. */
export type PhysicalMemory = BasePhysicalMemory
export const PhysicalMemory = {
  /**
   * Makes physical memory on the current device, or at another place (`cuMemCreate`).
   * @param byteLength a multiple of `allocationGranularity(options)`.
   * @throws RangeError for another length, StatusError when there is not as much.
   */
  create(byteLength: number, options: AllocationOptions & PlaceOption = {}): PhysicalMemory {
    const { place, ...rest } = options
    return BasePhysicalMemory.create(place ?? currentDevice(), byteLength, rest)
  },

  /**
   * The physical memory behind a mapped address, once more (`cuMemRetainAllocationHandle`).
   * @throws StatusError for an address where nothing is mapped.
   */
  retain(address: bigint, byteLength: number, options: PlaceOption = {}): PhysicalMemory {
    return BasePhysicalMemory.retain(address, byteLength, options.place ?? currentDevice())
  },

  /**
   * Memory that another process, or this one, exported (`cuMemImportFromShareableHandle`), for use by the current device
   * or the one named. The handle stays the caller's: dispose of it afterwards.
   * @throws TypeError for a handle of something else, StatusError for one that the driver does not take.
   */
  import(handle: ShareableHandle<'memory'>, options: DeviceOption = {}): PhysicalMemory {
    return BasePhysicalMemory.import(handle, deviceOrCurrent(options.device))
  },

  [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof BasePhysicalMemory
  },
} as const

/** How growable memory is made. */
export interface GrowableOptions extends BaseGrowableOptions, DeviceOption {}

/** Memory of a device that grows and shrinks in place: its address never changes and nothing is copied. */
export type GrowableRange = BaseGrowableRange
export const GrowableRange = {
  /** Reserves the addresses, for memory of the current device or of the one named. @throws RangeError, TypeError, StatusError */
  reserve(options: GrowableOptions): GrowableRange {
    const { device, ...rest } = options
    return BaseGrowableRange.reserve(deviceOrCurrent(device), rest)
  },

  [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof BaseGrowableRange
  },
} as const
