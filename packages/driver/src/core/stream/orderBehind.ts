import {
  type CUevent,
  type CUstream,
  cuEventCreate,
  cuEventDestroy,
  cuEventRecord,
  cuStreamWaitEvent,
} from '@shoal/cuda-sys/driver'
import { callInContext } from '@shoal/ffi'
import type { MemoryRange } from '@shoal/types'
import { check } from '../errors.js'
import { scratch } from '../native.js'

/** `CU_EVENT_DISABLE_TIMING` */
const withoutTiming = 2
/** What 0 stands for where it is a stream of a call. */
const legacyDefaultStream = 1n

/**
 * An event behind what is queued on a stream by now. Its owner destroys it.
 * @throws StatusError, also for a stream that is being captured
 */
export function eventBehind(context: bigint, stream: bigint): CUevent {
  const out = scratch()
  callInContext(context)
  check(cuEventCreate(out, withoutTiming), 'cuEventCreate')
  const event = out.u64[0] as CUevent
  try {
    callInContext(context)
    check(cuEventRecord(event, stream as CUstream), 'cuEventRecord')
    return event
  } catch (error) {
    cuEventDestroy(event)
    throw error
  }
}

/** What is pending on memory: the stream that its producer named, and the context of that. */
export type Producer = Pick<MemoryRange, 'stream' | 'context'>

/**
 * Makes what is queued on a stream from now on wait for what the producer of memory has queued by now, where it named
 * another stream (`cuEventRecord`, `cuStreamWaitEvent`).
 * @param context the one of the stream: of a producer without a context its streams are meant.
 * @throws StatusError, also where one of the streams is being captured and the other is not
 */
export function orderBehind(stream: bigint, context: bigint, producer: Producer): void {
  const pending = producer.stream
  if (pending === undefined || pending === null) return
  const owner = producer.context === 0n ? context : producer.context
  const own = stream === 0n ? legacyDefaultStream : stream
  // The handles of default streams mean another stream in each context.
  if (pending === own && (owner === context || own > 2n)) return
  const event = eventBehind(owner, pending)
  try {
    callInContext(context)
    check(cuStreamWaitEvent(stream as CUstream, event, 0), 'cuStreamWaitEvent')
  } finally {
    // The driver keeps it until it has come.
    callInContext(owner)
    cuEventDestroy(event)
  }
}
