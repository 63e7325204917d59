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

/** A random number of granules, as bytes. */
export function someBytes(t: CaseContext, device: Device, most = 4): number {
  return allocationGranularity(device) * t.random.integer(1, most)
}

/** Physical memory at an address, with all that belongs to it. */
export interface Mapped {
  readonly physical: PhysicalMemory
  readonly range: AddressRange
  readonly mapped: MappedRange
  /** The bytes. */
  readonly bytes: DeviceBuffer<'u8'>
}

/** Makes and maps memory; it goes when the case ends. */
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

/** Maps memory that is there at further addresses; the mapping goes when the case ends. */
export function mapAgain(t: CaseContext, device: Device, physical: PhysicalMemory): DeviceBuffer<'u8'> {
  const range = t.own(AddressRange.reserve(physical.byteLength))
  return DeviceBuffer.view(device, t.own(range.map(physical)), 'u8')
}

/** A part of a buffer with nothing round about its bounds. */
export function oddPart(t: CaseContext, buffer: DeviceBuffer<'u8'>): DeviceBuffer<'u8'> {
  const start = t.random.integer(1, buffer.length - 3)
  return buffer.slice(start, t.random.integer(start + 1, Math.min(buffer.length - 1, start + 300_000)))
}

/** All orders of a list. */
export function orders<T>(list: readonly T[]): T[][] {
  if (list.length < 2) return [[...list]]
  return list.flatMap((first, index) =>
    orders(list.filter((_, other) => other !== index)).map((rest) => [first, ...rest]),
  )
}
