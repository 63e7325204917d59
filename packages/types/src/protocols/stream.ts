import { outOfRange, requireAddress, wrongType } from '../arguments/scalars.js'
import { withJson } from '../json.js'
import { answerOf, refuseForged } from '../publicObject.js'
import { streamMode } from '../streamMode.js'
import { checkAddress, checkOrdinal, checkSameProcess, checkVersion, isPlain, offers } from './checks.js'

/**
 * Key of the stream protocol: `Symbol.for('cuda.stream')`.
 *
 * A global symbol, so that offering a stream needs no import of Shoal.
 */
export const streamProtocol: unique symbol = Symbol.for('cuda.stream')

/** Answer of the stream protocol, `Symbol.for('cuda.stream')`. */
export interface StreamHandle {
  /** Version of the protocol. */
  readonly version: 0
  /** The `CUstream` (which is also the `cudaStream_t`). */
  readonly handle: bigint
  /** Ordinal of the stream's device; -1 if unknown (a bare handle). */
  readonly deviceOrdinal: number
  /** `CUcontext` of the stream; 0n if unknown (a bare handle), which means the current context. */
  readonly context: bigint
}

/**
 * An object that is, or has, a CUDA stream.
 *
 * The property is a getter that throws `DisposedError` after the stream was destroyed.
 */
export interface StreamLike {
  readonly [streamProtocol]: StreamHandle
}

/** A stream as plain data for `postMessage` to another thread of the process. */
export interface StreamDescriptor extends StreamHandle {
  /** Discriminates descriptors. */
  readonly kind: 'cuda.stream'
  /** Id of the process in which the handle is valid. */
  readonly process: number
}

/**
 * Any stream argument: a stream object, a descriptor, a bare `CUstream`, or `null`.
 *
 * A descriptor comes from another thread. `null` is the default stream. A bare handle is not checked: it must be a
 * stream of the device.
 */
export type StreamArgument = StreamLike | StreamDescriptor | bigint | null

/** `CU_STREAM_PER_THREAD`: each thread's own default stream, however a library was built. */
const perThreadDefaultStream = 2n
/** Handles are addresses, and no process maps memory in the first page. */
const firstAddress = 4096n

const legacyDefault: StreamHandle = Object.freeze({ version: 0, handle: 0n, deviceOrdinal: -1, context: 0n })
const perThreadDefault: StreamHandle = Object.freeze({
  version: 0,
  handle: perThreadDefaultStream,
  deviceOrdinal: -1,
  context: 0n,
})

/** True if a value offers the stream protocol. Does not run its getter. */
export function isStreamLike(value: unknown): value is StreamLike {
  return offers(value, streamProtocol)
}

/**
 * Returns the handle of any stream argument.
 *
 * Accepts an object with the stream protocol, a descriptor from another thread of this process, a bare `CUstream` as
 * bigint, or null for the default stream of the current stream mode.
 *
 * @param api - the function, and `name` its parameter, that an error names
 * @throws TypeError when it is none of these, or the protocol's answer is malformed
 * @throws DisposedError when the stream was disposed
 */
export function toStreamHandle(stream: StreamArgument, api = 'toStreamHandle', name = 'stream'): StreamHandle {
  // Per-thread mode needs the explicit handle, because NCCL and NVSHMEM are built with the legacy meaning of 0.
  if (stream === null) return streamMode() === 'per-thread' ? perThreadDefault : legacyDefault
  if (typeof stream === 'bigint') {
    requireAddress(stream, api, name)
    if (stream > perThreadDefaultStream && stream < firstAddress)
      throw outOfRange(api, name, 'a CUstream, which is an address, or 0n, 1n or 2n for a default stream', stream)
    return { version: 0, handle: stream, deviceOrdinal: -1, context: 0n }
  }
  refuseForged(stream, api, name)
  if (isStreamLike(stream)) return checkedHandle(answerOf(stream, streamProtocol, api, name), api, name)
  if (isPlain(stream, 'cuda.stream')) {
    checkSameProcess(stream, api, name, 'A stream cannot be used outside its process.')
    return checkedHandle(stream, api, name)
  }
  const expected = "an object with [Symbol.for('cuda.stream')], a CUstream as bigint, or null for the default stream"
  throw wrongType(api, name, expected, stream)
}

/**
 * Describes a stream as plain data for `postMessage`.
 *
 * The sender must keep the stream alive; the descriptor does not.
 *
 * @throws TypeError when `stream` is not a stream, or is the per-thread default stream, which differs on every thread
 * @example
 * worker.postMessage(describeStream(stream))
 */
export function describeStream(stream: StreamArgument): StreamDescriptor {
  const { handle, deviceOrdinal, context } = toStreamHandle(stream, 'describeStream')
  if (handle === perThreadDefaultStream) {
    throw new TypeError(
      'describeStream: stream must be a created stream, not the per-thread default stream, which differs between threads',
    )
  }
  return withJson({ kind: 'cuda.stream', version: 0, process: process.pid, handle, deviceOrdinal, context })
}

function checkedHandle(answer: StreamHandle, api: string, name: string): StreamHandle {
  checkVersion(answer, 'cuda.stream', api, name)
  checkAddress(answer.handle, api, name, 'handle')
  checkOrdinal(answer.deviceOrdinal, api, name)
  checkAddress(answer.context, api, name, 'context')
  return answer
}
