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
/** The stream that handle 0 means as an argument of a call. */
const legacyDefaultStream = 1n

/**
 * Creates an event after the stream's current work. The caller destroys the event.
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

/** The pending work on memory: its producer's stream, and the context of that stream. */
export type Producer = Pick<MemoryRange, 'stream' | 'context'>

/**
 * Makes later work of a stream wait for the current work of a memory's producer stream. Does nothing if both streams
 * are the same (`cuEventRecord`, `cuStreamWaitEvent`).
 * @param context the context of `stream`; also the producer's context if the producer names none
 * @throws StatusError, also when only one of the streams is being captured
 */
export function orderBehind(stream: bigint, context: bigint, producer: Producer): void {
  const pending = producer.stream
  if (pending === undefined || pending === null) return
  const owner = producer.context === 0n ? context : producer.context
  const own = stream === 0n ? legacyDefaultStream : stream
  // The handles of default streams mean a different stream in each context.
  if (pending === own && (owner === context || own > 2n)) return
  const event = eventBehind(owner, pending)
  try {
    callInContext(context)
    check(cuStreamWaitEvent(stream as CUstream, event, 0), 'cuStreamWaitEvent')
  } finally {
    // The driver keeps the destroyed event until it completes.
    callInContext(owner)
    cuEventDestroy(event)
  }
}
