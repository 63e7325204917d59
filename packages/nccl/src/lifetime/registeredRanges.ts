import { DisposedError, type MemoryRange } from '@shoal/types'

/** Memory that NCCL has registered, and by what. */
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

/** @throws DisposedError when the registration has ended */
export function requireRegistered(range: RegisteredRange): void {
  if (!open.has(range)) throw new DisposedError(range.description)
}

/** What is registered over a part of the memory. */
export function registrationsWithin({ address, byteLength, deviceOrdinal }: MemoryRange): RegisteredRange[] {
  const end = address + BigInt(byteLength)
  return [...open].filter(
    (range) =>
      range.deviceOrdinal === deviceOrdinal &&
      range.address < end &&
      address < range.address + BigInt(range.byteLength),
  )
}
