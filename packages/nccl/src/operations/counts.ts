import { ncclDataType_t } from '@shoal/nccl-sys'
import { type MemoryRange, requireCount } from '@shoal/types'
import { checkRoom, elementsOf, type WireType } from '../arguments/operands.js'
import { requireNcclVersion } from '../version.js'

const firstWithFloat8 = 22403

/** Returns the count of an operation on one buffer. */
export function ownCount(range: MemoryRange, name: string, wire: WireType, count: unknown, api: string): number {
  if (count === undefined) return elementsOf(range, wire)
  const elements = requireCount(count, api, 'count')
  checkRoom(range, elements, wire, api, name)
  return elements
}

/** Returns the count of an operation whose buffers have equal size. */
export function sameCount(
  source: MemoryRange,
  target: MemoryRange,
  wire: WireType,
  count: unknown,
  api: string,
): number {
  if (count === undefined) {
    const available = elementsOf(source, wire)
    if (source.byteLength === target.byteLength) return available
    throw new RangeError(
      `${api}: send has ${available} elements and recv ${elementsOf(target, wire)}; pass a count if they differ`,
    )
  }
  const elements = requireCount(count, api, 'count')
  checkRoom(source, elements, wire, api, 'send')
  checkRoom(target, elements, wire, api, 'recv')
  return elements
}

/** Returns the count of an operation in which `whole` holds one part per rank. */
export function partCount(
  part: MemoryRange,
  partName: string,
  whole: MemoryRange,
  wholeName: string,
  ranks: number,
  wire: WireType,
  count: unknown,
  api: string,
): number {
  if (count === undefined) {
    const available = elementsOf(part, wire)
    if (available * ranks === elementsOf(whole, wire)) return available
    throw new RangeError(
      `${api}: ${partName} has ${available} elements, so ${wholeName} needs ${available} × ${ranks} ranks; ` +
        `it has ${elementsOf(whole, wire)}. Pass a count if they differ`,
    )
  }
  const elements = requireCount(count, api, 'count')
  checkRoom(part, elements, wire, api, partName)
  checkRoom(whole, elements * ranks, wire, api, wholeName)
  return elements
}

/** Returns the count per rank of an operation whose two buffers hold one part per rank. */
export function shareCount(
  source: MemoryRange,
  target: MemoryRange,
  ranks: number,
  wire: WireType,
  count: unknown,
  api: string,
): number {
  if (count === undefined) {
    const all = sameCount(source, target, wire, undefined, api)
    if (all % ranks === 0) return all / ranks
    throw new RangeError(`${api}: ${all} elements cannot be divided equally among ${ranks} ranks; pass a count`)
  }
  const elements = requireCount(count, api, 'count')
  checkRoom(source, elements * ranks, wire, api, 'send')
  checkRoom(target, elements * ranks, wire, api, 'recv')
  return elements
}

/** Returns the `ncclDataType_t` for a reduction. */
export function reducible(wire: WireType, api: string): ncclDataType_t {
  const { code } = wire
  if (code === undefined) throw new TypeError(`${api}: NCCL cannot reduce elements of ${wire.dtype}`)
  if (code >= ncclDataType_t.ncclFloat8e4m3) requireNcclVersion(`${api} of ${wire.dtype}`, firstWithFloat8)
  return code as ncclDataType_t
}

/** Returns count and `ncclDataType_t` for a copy; types unknown to NCCL are copied as bytes. */
export function copyable(wire: WireType, count: number): [count: number, type: ncclDataType_t] {
  if (wire.code === undefined || wire.code >= ncclDataType_t.ncclFloat8e4m3)
    return [count * wire.bytes, ncclDataType_t.ncclUint8]
  return [count, wire.code as ncclDataType_t]
}
