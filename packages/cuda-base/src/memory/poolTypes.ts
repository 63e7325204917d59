import { type DType, describeValue, dtypeInfo } from '@shoal/types'
import { requireLength } from '../checks.js'
import type { HandleKind } from '../share/handleKinds.js'

/** How a pool is made. */
export interface MemoryPoolOptions {
  /** Kinds of handle the pool can be exported as. Default: none. */
  readonly handleTypes?: HandleKind | readonly HandleKind[] | undefined
  /** The most it may hold, in bytes. Default: the driver's limit. */
  readonly maximumBytes?: number | undefined
}

/** When a pool may hand memory that was freed on one stream to another. All are true at first. */
export interface ReusePolicy {
  /** Where the other stream waits for an event of the first. */
  readonly followEventDependencies: boolean
  /** Where the free has happened already, by chance. */
  readonly opportunistic: boolean
  /** By making the other stream wait. */
  readonly internalDependencies: boolean
}

/** Bytes now, and the most there have been since the last reset of the high-water mark. */
export interface PoolUsage {
  readonly current: number
  readonly high: number
}

/** One allocation of a pool on its way to another process: 64 bytes, its length and its type. JSON can carry it. */
export interface PoolPointer<D extends DType = DType> {
  readonly type: 'pool-pointer'
  /** The 64 bytes, base64. */
  readonly data: string
  readonly dtype: D
  readonly length: number
}

/** What a refusal to export a pointer is about. */
export const onlyItsOwn = 'the memory must be from this pool, and the pool made with handleTypes'

const pointerBytes = 64

/** The bytes of a pool pointer. @throws TypeError, RangeError for what is none. */
export function poolPointerBytes(pointer: PoolPointer): Uint8Array {
  if (typeof pointer !== 'object' || pointer === null || pointer.type !== 'pool-pointer') {
    throw new TypeError(`pointer must be what exportPointer() gave, not ${describeValue(pointer)}`)
  }
  requireLength(pointer.length, 'length', dtypeInfo(pointer.dtype).bytes)
  const data = Uint8Array.from(Buffer.from(String(pointer.data), 'base64'))
  if (data.length !== pointerBytes) {
    throw new RangeError(`a pool pointer has ${pointerBytes} bytes, not ${data.length}`)
  }
  return data
}

/** A pool pointer from the 64 bytes at the start of a buffer. */
export function poolPointerFrom<D extends DType>(buffer: ArrayBuffer, dtype: D, length: number): PoolPointer<D> {
  return { type: 'pool-pointer', data: Buffer.from(buffer, 0, pointerBytes).toString('base64'), dtype, length }
}
