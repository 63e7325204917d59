import {
  PhysicalMemory as BasePhysicalMemory,
  allocationGranularity as baseGranularity,
  type GranularityOptions,
  granularityKeys,
  type MemoryPlace,
  type PhysicalMemoryOptions,
  physicalMemoryKeys,
  type ShareableHandle,
} from '@shoal/driver/shared'
import { type OptionKeys, optionalOptions } from '@shoal/types'
import { currentDevice, type DeviceOption, deviceOrCurrent } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Option that selects the place of physical memory. */
export interface PlaceOption {
  /** A device or context of any package, `'host'` or `{ hostNode }`. Default: the current device. */
  readonly place?: MemoryPlace | undefined
}

const placeKeys: OptionKeys<PlaceOption> = { place: true }
const createKeys: OptionKeys<PhysicalMemoryOptions & PlaceOption> = { ...physicalMemoryKeys, ...placeKeys }
const granularityPlaceKeys: OptionKeys<GranularityOptions & PlaceOption> = { ...granularityKeys, ...placeKeys }
const deviceKeys: OptionKeys<DeviceOption> = { device: true }

/**
 * Returns the granularity of sizes and offsets in bytes (`cuMemGetAllocationGranularity`).
 *
 * Applies to memory of the current device or another place.
 * @throws TypeError, RangeError; StatusError if the driver does not support such memory.
 */
export function allocationGranularity(options?: GranularityOptions & PlaceOption): number {
  const { place = currentDevice(), ...rest } = optionalOptions(options, 'allocationGranularity', granularityPlaceKeys)
  return baseGranularity(place, rest)
}

/**
 * Memory without an address. To use it, map it into an `AddressRange`, once or several times.
 *
 * `dispose()` releases this handle. The memory is freed when no mapping and no other handle is left.
 */
export type PhysicalMemory = BasePhysicalMemory
export const PhysicalMemory = withFactories(BasePhysicalMemory, {
  /**
   * Allocates physical memory on the current device, or at another place (`cuMemCreate`).
   *
   * @param byteLength size in bytes, a multiple of `allocationGranularity(options)`.
   * @throws TypeError; RangeError for another length; StatusError if there is not enough memory.
   * @example
   * using memory = PhysicalMemory.create(allocationGranularity())
   * using range = AddressRange.reserve(memory.byteLength)
   * using mapped = range.map(memory)
   */
  create(byteLength: number, options?: PhysicalMemoryOptions & PlaceOption): PhysicalMemory {
    const { place = currentDevice(), ...rest } = optionalOptions(options, 'PhysicalMemory.create', createKeys)
    return BasePhysicalMemory.create(place, byteLength, rest)
  },

  /**
   * Returns another handle of the physical memory at a mapped address (`cuMemRetainAllocationHandle`).
   *
   * @param byteLength size of the memory in bytes, which the driver does not report. @throws TypeError; RangeError if
   * the memory is at another place; StatusError for an address without a mapping.
   */
  retain(address: bigint, byteLength: number, options?: PlaceOption): PhysicalMemory {
    const { place = currentDevice() } = optionalOptions(options, 'PhysicalMemory.retain', placeKeys)
    return BasePhysicalMemory.retain(place, address, byteLength)
  },

  /**
   * Imports memory that this or another process exported (`cuMemImportFromShareableHandle`).
   *
   * The current or the given device uses it. The caller keeps ownership of the handle.
   * @throws TypeError for a handle of another kind; RangeError for a size that device memory cannot have;
   * FeatureNotSupportedError if the memory is on a device that this process cannot see; StatusError if the driver
   * refuses the handle.
   */
  import(handle: ShareableHandle<'memory'>, options?: DeviceOption): PhysicalMemory {
    const { device } = optionalOptions(options, 'PhysicalMemory.import', deviceKeys)
    return BasePhysicalMemory.import(deviceOrCurrent(device, 'PhysicalMemory.import'), handle)
  },
})
