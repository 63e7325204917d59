import { type DType, dtypeInfo, type OptionKeys, propertyOf, requireInteger, wrongType } from '@shoal/types'
import { decodeHandle, encodeHandle, handleBytes } from '../ipc/handleBytes.js'
import type { HandleKind } from '../share/handleKinds.js'

/** How a pool is made. */
export interface MemoryPoolOptions {
  /** Kinds of handle the pool can be exported as. Default: none. */
  readonly handleTypes?: HandleKind | readonly HandleKind[] | undefined
  /** The most it may hold, in bytes. Default: the driver's limit. */
  readonly maximumBytes?: number | undefined
}

export const poolKeys: OptionKeys<MemoryPoolOptions> = { handleTypes: true, maximumBytes: true }

/** When a pool may hand memory that was freed on one stream to another. All are true at first. */
export interface ReusePolicy {
  /** Where the other stream waits for an event of the first. */
  readonly followEventDependencies: boolean
  /** Where the free has happened already, by chance. */
  readonly opportunistic: boolean
  /** By making the other stream wait. */
  readonly internalDependencies: boolean
}

export const reuseKeys: OptionKeys<ReusePolicy> = {
  followEventDependencies: true,
  opportunistic: true,
  internalDependencies: true,
}

/** Bytes now, and the most there have been since the last reset of the high-water mark. */
export interface PoolUsage {
  /** Bytes now. */
  readonly current: number
  /** The most since the last reset. */
  readonly high: number
}

/** One allocation of a pool on its way to another process: 64 bytes, its length and its type. JSON can carry it. */
export interface PoolPointer<D extends DType = DType> {
  /** Tells it from other handles that arrive as JSON. */
  readonly type: 'pool-pointer'
  /** The 64 bytes, base64. */
  readonly data: string
  /** The type of its elements. */
  readonly dtype: D
  /** Number of elements. */
  readonly length: number
}

/** What a refusal to export a pointer is about. */
export const onlyItsOwn = 'the memory must be from this pool, and the pool made with handleTypes'

/** The bytes of a pool pointer. @throws TypeError, RangeError for what is none. */
export function poolPointerBytes(pointer: PoolPointer, api: string): Uint8Array {
  if (propertyOf(pointer, 'type') !== 'pool-pointer') {
    throw wrongType(api, 'pointer', 'what exportPointer() gave', pointer)
  }
  const { bytes } = dtypeInfo(pointer.dtype, api, 'pointer.dtype')
  requireInteger(pointer.length, api, 'pointer.length', 1, Math.floor(Number.MAX_SAFE_INTEGER / bytes))
  return decodeHandle(pointer.data, api, 'pointer.data')
}

/** A pool pointer from the 64 bytes at the start of a buffer. */
export function poolPointerFrom<D extends DType>(buffer: ArrayBuffer, dtype: D, length: number): PoolPointer<D> {
  return { type: 'pool-pointer', data: encodeHandle(new Uint8Array(buffer, 0, handleBytes)), dtype, length }
}
