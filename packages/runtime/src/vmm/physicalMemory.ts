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

/** Where physical memory is made. */
export interface PlaceOption {
  /** A device or context of any package, `'host'` or `{ hostNode }`. Default: the current device. */
  readonly place?: MemoryPlace | undefined
}

const placeKeys: OptionKeys<PlaceOption> = { place: true }
const createKeys: OptionKeys<PhysicalMemoryOptions & PlaceOption> = { ...physicalMemoryKeys, ...placeKeys }
const granularityPlaceKeys: OptionKeys<GranularityOptions & PlaceOption> = { ...granularityKeys, ...placeKeys }
const deviceKeys: OptionKeys<DeviceOption> = { device: true }

/**
 * Bytes that the sizes and offsets of memory of the current device, or of another place, must be a multiple of
 * (`cuMemGetAllocationGranularity`). @throws TypeError, RangeError; StatusError when the driver has no such memory.
 */
export function allocationGranularity(options?: GranularityOptions & PlaceOption): number {
  const { place = currentDevice(), ...rest } = optionalOptions(options, 'allocationGranularity', granularityPlaceKeys)
  return baseGranularity(place, rest)
}

/**
 * Memory without an address. Map it into an `AddressRange`, once or several times, to use it. `dispose()` gives up this
 * handle of it; the memory is freed when nothing maps it and no other handle is left.
 */
export type PhysicalMemory = BasePhysicalMemory
export const PhysicalMemory = withFactories(BasePhysicalMemory, {
  /**
   * Makes physical memory on the current device, or at another place (`cuMemCreate`).
   * @param byteLength a multiple of `allocationGranularity(options)`.
   * @throws TypeError; RangeError for another length; StatusError when there is not enough memory.
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
   * Another handle of the physical memory behind a mapped address (`cuMemRetainAllocationHandle`).
   * @param byteLength its size, which the driver does not tell.
   * @throws TypeError; RangeError when it lies elsewhere; StatusError for an address where nothing is mapped.
   */
  retain(address: bigint, byteLength: number, options?: PlaceOption): PhysicalMemory {
    const { place = currentDevice() } = optionalOptions(options, 'PhysicalMemory.retain', placeKeys)
    return BasePhysicalMemory.retain(place, address, byteLength)
  },

  /**
   * Memory that this process or another one exported (`cuMemImportFromShareableHandle`), for use by the current device
   * or another one. The handle stays the caller's to dispose of.
   * @throws TypeError for a handle of something else; RangeError for a size that memory of a device cannot have;
   * FeatureNotSupportedError when it lies on a device that this process does not see; StatusError for a handle that the
   * driver refuses.
   */
  import(handle: ShareableHandle<'memory'>, options?: DeviceOption): PhysicalMemory {
    const { device } = optionalOptions(options, 'PhysicalMemory.import', deviceKeys)
    return BasePhysicalMemory.import(deviceOrCurrent(device, 'PhysicalMemory.import'), handle)
  },
})
