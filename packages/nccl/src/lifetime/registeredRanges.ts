import { DisposedError, type MemoryRange } from '@shoal/types'

/** Memory registered with NCCL, and the object that registered it. */
export interface RegisteredRange {
  readonly deviceOrdinal: number
  readonly address: bigint
  readonly byteLength: number
  readonly description: string
}

const open = new Set<RegisteredRange>()

export function addRegistration(range: RegisteredRange): void {
  open.add(range)
}

export function removeRegistration(range: RegisteredRange): void {
  open.delete(range)
}

/** Requires a registration that has not ended. @throws DisposedError */
export function requireRegistered(range: RegisteredRange): void {
  if (!open.has(range)) throw new DisposedError(range.description)
}

/** Returns the registrations that overlap a range of memory. */
export function registrationsWithin({ address, byteLength, deviceOrdinal }: MemoryRange): RegisteredRange[] {
  const end = address + BigInt(byteLength)
  return [...open].filter(
    (range) =>
      range.deviceOrdinal === deviceOrdinal &&
      range.address < end &&
      address < range.address + BigInt(range.byteLength),
  )
}
