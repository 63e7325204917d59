import type { Device, DeviceBuffer, Stream } from '@shoal/driver'
import type { Session, SymmetricBuffer, Team } from '@shoal/nvshmem'
import { type DType, dtypeInfo, type TypedArrayOf } from '@shoal/types'
import type { TeamName } from './trial.js'

/** One PE with the objects that trials use. */
export interface Pe {
  readonly session: Session
  readonly device: Device
  readonly stream: Stream
  /** Symmetric memory that other PEs write to or read from. */
  readonly target: SymmetricBuffer<'u8'>
  readonly source: SymmetricBuffer<'u8'>
  readonly signals: SymmetricBuffer<'u64'>
  /** Memory of this PE's device that is not symmetric. */
  readonly local: DeviceBuffer<'u8'>
  /** Selects the elements that a wait for several elements ignores. */
  readonly ignore: DeviceBuffer<'i32'>
  /** Undefined if this PE is not in the team. */
  readonly teams: { readonly [T in TeamName]: Team | undefined }
}

/** The content of memory that was never written. */
export const untouched = 0xa5

/** The number of guard elements before and after the data. */
export const guard = 4

/** Returns the data elements of a dtype, without the guard before them. */
export function elementsIn<D extends DType>(
  memory: SymmetricBuffer<'u8'>,
  dtype: D,
  count: number,
): SymmetricBuffer<D> {
  const { bytes } = dtypeInfo(dtype)
  return memory
    .slice(0, (count + 2 * guard) * bytes)
    .reinterpret(dtype)
    .slice(guard, guard + count)
}

/** Does the same for memory that is not symmetric. */
export function localElements<D extends DType>(memory: DeviceBuffer<'u8'>, dtype: D, count: number): DeviceBuffer<D> {
  const { bytes } = dtypeInfo(dtype)
  return memory
    .slice(0, (count + 2 * guard) * bytes)
    .reinterpret(dtype)
    .slice(guard, guard + count)
}

interface ByteMemory {
  slice(start: number, end: number): { copyFromSync(from: Uint8Array): unknown; toArraySync(): Uint8Array }
}

/** Writes elements with guard elements around them. Nothing may write to the guard. */
export function reset(memory: ByteMemory, dtype: DType, count: number, bytes?: Uint8Array): void {
  const size = dtypeInfo(dtype).bytes
  const all = new Uint8Array((count + 2 * guard) * size).fill(untouched)
  if (bytes !== undefined) all.set(bytes, guard * size)
  memory.slice(0, all.length).copyFromSync(all)
}

/** Reads the elements. @throws Error if the guard was written to */
export function readBack(memory: ByteMemory, dtype: DType, count: number): Uint8Array {
  const margin = guard * dtypeInfo(dtype).bytes
  const all = memory.slice(0, count * dtypeInfo(dtype).bytes + 2 * margin).toArraySync()
  const inside = all.subarray(margin, all.length - margin)
  for (const part of [all.subarray(0, margin), all.subarray(all.length - margin)]) {
    if (part.some((byte) => byte !== untouched)) throw new Error('what lies beside the elements was written to')
  }
  return inside
}

/** Copies bytes to an aligned typed array of a dtype. */
export function arrayOf<D extends DType>(dtype: D, bytes: Uint8Array): TypedArrayOf<D> {
  const { typedArray } = dtypeInfo(dtype)
  return new typedArray(bytes.slice().buffer) as TypedArrayOf<D>
}
