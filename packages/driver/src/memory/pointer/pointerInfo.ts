import { isMemoryLike, type MemoryLike, withJson } from '@shoal/types'
import type { DeviceOrContext } from '../../core/context/context.js'
import { toSpan } from '../../core/ranges/span.js'
import { attributesAt } from './pointerAttributes.js'

/** What CUDA knows about an address. */
export interface PointerInfo {
  /** `'host'` for page-locked memory of the host, `'unregistered'` for memory CUDA does not know. */
  readonly type: 'unregistered' | 'host' | 'device' | 'managed'
  /** Ordinal of its device; undefined for unregistered memory. */
  readonly deviceOrdinal: number | undefined
  /** The address that kernels use; undefined where they cannot. */
  readonly devicePointer: bigint | undefined
  /** The address that the host uses; undefined where it cannot. */
  readonly hostPointer: bigint | undefined
  /** First address of the allocation it lies in; 0n for unregistered memory. */
  readonly rangeStart: bigint
  /** Bytes of that allocation; 0 for unregistered memory. */
  readonly rangeLength: number
}

/**
 * Asks what lies at an address (`cuPointerGetAttributes`). An address CUDA does not know is no error.
 * @param pointer memory, or its address.
 */
export function pointerInfo(owner: DeviceOrContext, pointer: bigint | MemoryLike): PointerInfo {
  const api = 'pointerInfo'
  const address = isMemoryLike(pointer) ? toSpan(pointer, api, 'pointer').address : pointer
  const known = attributesAt(
    owner,
    address,
    ['MEMORY_TYPE', 'IS_MANAGED', 'DEVICE_ORDINAL', 'DEVICE_POINTER', 'HOST_POINTER', 'RANGE_START_ADDR', 'RANGE_SIZE'],
    api,
    'pointer',
  )
  const isKnown = known.MEMORY_TYPE !== 'unknown'
  return withJson({
    type: known.IS_MANAGED ? 'managed' : known.MEMORY_TYPE === 'unknown' ? 'unregistered' : known.MEMORY_TYPE,
    deviceOrdinal: isKnown && known.DEVICE_ORDINAL >= 0 ? known.DEVICE_ORDINAL : undefined,
    devicePointer: isKnown ? nonZero(known.DEVICE_POINTER) : undefined,
    hostPointer: isKnown ? nonZero(known.HOST_POINTER) : undefined,
    rangeStart: known.RANGE_START_ADDR,
    rangeLength: known.RANGE_SIZE,
  })
}

function nonZero(address: bigint): bigint | undefined {
  return address === 0n ? undefined : address
}
