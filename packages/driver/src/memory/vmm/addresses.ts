import { cuMemAddressFree, cuMemAddressReserve } from '@shoal/cuda-sys/driver'
import { check, checkRelease } from '../../core/errors.js'
import { scratch } from '../../core/native.js'

/** Reservations are multiples of this number of bytes. */
export const reservationUnit = 2 * 1024 * 1024

/** Reserves addresses (`cuMemAddressReserve`). @throws StatusError when there are not enough */
export function reserveAddresses(byteLength: number, alignment = 0, wanted = 0n): bigint {
  const out = scratch()
  check(cuMemAddressReserve(out, byteLength, alignment, wanted, 0), 'cuMemAddressReserve')
  return out.u64[0] as bigint
}

/** Frees addresses (`cuMemAddressFree`). */
export function freeAddresses(address: bigint, byteLength: number): void {
  checkRelease(cuMemAddressFree(address, byteLength), 'cuMemAddressFree')
}
