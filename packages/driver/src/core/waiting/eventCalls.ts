import { type CUevent, driver } from '@shoal/cuda-sys/driver'
import { cuEventQueryUnchecked, cuEventRecordUnchecked } from '../calls/uncheckedCalls.gen.js'
import type { Context } from '../context/context.js'
import { check } from '../errors.js'
import type { U64Halves } from '../u64Halves.js'

/** Records an internal event on a checked stream. @throws DisposedError, StatusError */
export function recordMark(context: Context, event: CUevent, stream: U64Halves): void {
  context._requireAlive()
  check(cuEventRecordUnchecked(context._halves, event, stream), 'cuEventRecord')
}

/** Returns the current status of an event. */
export function eventStatusNow(context: Context, event: CUevent): number {
  return cuEventQueryUnchecked(context._halves, event)
}

/** The address of `cuEventQuery`, for the native thread that waits. */
let address: bigint | undefined

export function eventQueryAddress(): bigint {
  address ??= driver.address('cuEventQuery', 2000)
  return address
}
