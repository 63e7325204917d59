import { addon } from '../addon/load.js'
import { createHostCallback, type HostCallback } from '../waiting/hostCallback.js'

/** A tensor as C has it. */
export interface TensorFields {
  readonly data: bigint
  readonly deviceType: number
  readonly deviceId: number
  /** `DLDataType`: code, bits << 8, lanes << 16. */
  readonly type: number
  readonly shape: readonly number[]
  readonly strides: readonly number[]
  /** Of a `DLManagedTensorVersioned`; undefined makes a `DLManagedTensor`. */
  readonly flags?: bigint | undefined
}

/**
 * Makes a tensor of DLPack in native memory. `onDelete` is called on this thread once its deleter was called, on any.
 */
export function createTensor(fields: TensorFields, onDelete: () => void): bigint {
  const { data, deviceType, deviceId, type, shape, strides, flags } = fields
  const callback: HostCallback = createHostCallback(() => {
    callback.dispose()
    onDelete()
  })
  const sizes = BigInt64Array.from([...shape, ...strides], BigInt)
  return addon().createTensor(data, deviceType, deviceId, type, sizes, Number(callback.userData), flags ?? null)
}

/** Calls the deleter of a tensor, of whoever made it. */
export function deleteTensor(address: bigint, isVersioned: boolean): void {
  addon().deleteTensor(address, isVersioned)
}

/** What an External of another addon points to; undefined for anything else. */
export function externalAddress(value: unknown): bigint | undefined {
  return addon().externalAddress(value)
}
