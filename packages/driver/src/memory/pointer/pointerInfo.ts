import { isMemoryLike, type MemoryLike, withJson } from '@shoal/types'
import type { DeviceOrContext } from '../../core/context/context.js'
import { toSpan } from '../../core/ranges/span.js'
import { attributesAt } from './pointerAttributes.js'

/** CUDA's information about an address. */
export interface PointerInfo {
  /** `'host'` for page-locked host memory, `'unregistered'` for memory unknown to CUDA. */
  readonly type: 'unregistered' | 'host' | 'device' | 'managed'
  /** Ordinal of the memory's device; undefined for unregistered memory. */
  readonly deviceOrdinal: number | undefined
  /** The address for kernels; undefined if kernels cannot use the memory. */
  readonly devicePointer: bigint | undefined
  /** The address for the host; undefined if the host cannot use the memory. */
  readonly hostPointer: bigint | undefined
  /** First address of the allocation; 0n for unregistered memory. */
  readonly rangeStart: bigint
  /** Size of the allocation in bytes; 0 for unregistered memory. */
  readonly rangeLength: number
}

/**
 * Returns information about the memory at an address (`cuPointerGetAttributes`). An unknown address is not an error.
 * @param pointer memory, or its address
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
