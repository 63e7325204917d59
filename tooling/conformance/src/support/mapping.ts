import {
  type AccessGrant,
  AddressRange,
  allocationGranularity,
  type Device,
  DeviceBuffer,
  type MappedRange,
  PhysicalMemory,
} from '@shoal/driver'
import type { CaseContext } from '../suite.js'

/** Returns the bytes of a random number of granules. */
export function someBytes(t: CaseContext, device: Device, most = 4): number {
  return allocationGranularity(device) * t.random.integer(1, most)
}

/** Mapped physical memory with all of its objects. */
export interface Mapped {
  readonly physical: PhysicalMemory
  readonly range: AddressRange
  readonly mapped: MappedRange
  readonly bytes: DeviceBuffer<'u8'>
}

/** Creates and maps memory. The case frees it. */
export function mapNew(
  t: CaseContext,
  device: Device,
  byteLength: number,
  options: { readonly access?: readonly AccessGrant[]; readonly isShared?: boolean } = {},
): Mapped {
  const physical = t.own(
    PhysicalMemory.create(device, byteLength, options.isShared === true ? { handleTypes: 'posix-fd' } : {}),
  )
  const range = t.own(AddressRange.reserve(byteLength))
  const mapped = t.own(range.map(physical, options.access === undefined ? {} : { access: options.access }))
  return { physical, range, mapped, bytes: DeviceBuffer.view(device, mapped, 'u8') }
}

/** Maps existing memory at another address. The case ends the mapping. */
export function mapAgain(t: CaseContext, device: Device, physical: PhysicalMemory): DeviceBuffer<'u8'> {
  const range = t.own(AddressRange.reserve(physical.byteLength))
  return DeviceBuffer.view(device, t.own(range.map(physical)), 'u8')
}

/** Returns a part of a buffer with unaligned bounds. */
export function oddPart(t: CaseContext, buffer: DeviceBuffer<'u8'>): DeviceBuffer<'u8'> {
  const start = t.random.integer(1, buffer.length - 3)
  return buffer.slice(start, t.random.integer(start + 1, Math.min(buffer.length - 1, start + 300_000)))
}

/** Returns all orders of a list. */
export function orders<T>(list: readonly T[]): T[][] {
  if (list.length < 2) return [[...list]]
  return list.flatMap((first, index) =>
    orders(list.filter((_, other) => other !== index)).map((rest) => [first, ...rest]),
  )
}
