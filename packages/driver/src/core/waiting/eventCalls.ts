import { type CUevent, driver } from '@shoal/cuda-sys/driver'
import { contextSlot, slots32, slots64 } from '@shoal/ffi/calls'
import { directCalls } from '../calls/cudaLibrary.js'
import type { Context } from '../context/context.js'
import { check } from '../errors.js'
import type { U64Halves } from '../u64Halves.js'

const direct = directCalls(driver)
const recordCall = direct('cuEventRecord', 2000, 2)
const queryCall = direct('cuEventQuery', 2000, 1)

/** Records an event of ours on a stream that was checked. @throws DisposedError, StatusError */
export function recordMark(context: Context, event: CUevent, stream: U64Halves): void {
  context._requireAlive()
  const call = recordCall.bind()
  const slots = slots32
  slots64[0] = event
  slots[2] = stream.low
  slots[3] = stream.high
  slots[2 * contextSlot] = context._halves.low
  slots[2 * contextSlot + 1] = context._halves.high
  check(call(), 'cuEventRecord')
}

/** The status of an event now. */
export function eventStatusNow(context: Context, event: CUevent): number {
  const call = queryCall.bind()
  slots64[0] = event
  slots32[2 * contextSlot] = context._halves.low
  slots32[2 * contextSlot + 1] = context._halves.high
  return call()
}

/** The address of `cuEventQuery`, for the native thread that waits. */
let address: bigint | undefined

export function eventQueryAddress(): bigint {
  address ??= driver.address('cuEventQuery', 2000)
  return address
}
