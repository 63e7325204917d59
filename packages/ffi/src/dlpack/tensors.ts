import { addon } from '../addon/load.js'
import { createHostCallback, type HostCallback } from '../waiting/hostCallback.js'

/** Fields of a DLPack tensor in C. */
export interface TensorFields {
  readonly data: bigint
  readonly deviceType: number
  readonly deviceId: number
  /** `DLDataType`: code, bits << 8, lanes << 16. */
  readonly type: number
  readonly shape: readonly number[]
  readonly strides: readonly number[]
  /** Flags of a `DLManagedTensorVersioned`; undefined makes a `DLManagedTensor`. */
  readonly flags?: bigint | undefined
}

/**
 * Makes a DLPack tensor in native memory.
 *
 * `onDelete` is called on this thread after any thread called the deleter.
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

/** Calls the deleter of a tensor of any origin. */
export function deleteTensor(address: bigint, isVersioned: boolean): void {
  addon().deleteTensor(address, isVersioned)
}

/** Returns the pointer of an External of another addon; undefined for any other value. */
export function externalAddress(value: unknown): bigint | undefined {
  return addon().externalAddress(value)
}
