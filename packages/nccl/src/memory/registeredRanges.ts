import { DisposedError, type MemoryRange } from '@shoal/types'

/** Memory that NCCL has registered, and by what. */
export interface RegisteredRange {
  readonly deviceOrdinal: number
  readonly address: bigint
  readonly byteLength: number
  readonly description: string
  /**
   * A call that waits for other ranks still has the memory. Where its communicator has ended, it lets go of it when it returns,
   * which may be never, and the promise resolves then; undefined while it may go on.
   */
  readonly whenReleased?: () => Promise<void> | undefined
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
