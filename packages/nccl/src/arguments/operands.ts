import { boundStreamOf, missingStreams, orderBehind, requireGranted } from '@shoal/driver/basics'
import type { cudaStream_t } from '@shoal/nccl-sys'
import type { DType, MemoryLike, MemoryRange, StreamArgument, StreamHandle, StreamLike } from '@shoal/types'
import {
  dtypeInfo,
  dtypes,
  isRevoked,
  memoryProtocol,
  requireKeyOf,
  streamProtocol,
  toMemoryRange,
  toStreamHandle,
} from '@shoal/types'

/** What every collective has to know about a dtype. */
export interface WireType {
  readonly dtype: DType
  readonly bytes: number
  /** `ncclDataType_t`; undefined where NCCL cannot reduce such elements. */
  readonly code: number | undefined
}

const wireTypes = Object.fromEntries(
  dtypes.map((dtype) => {
    const info = dtypeInfo(dtype)
    return [dtype, { dtype, bytes: info.bytes, code: info.ncclCode }]
  }),
) as { readonly [D in DType]: WireType }

// An address as 64 bits and as two halves.
const bits64 = new BigUint64Array(1)
const halves = new Uint32Array(bits64.buffer)

/** Where the operands of a call have to live. */
export interface Place {
  readonly deviceOrdinal: number
  readonly context: bigint
}

// The range is read straight from the protocol here and checked only for what the call depends on: the general check
// of @shoal/types costs as much as the call itself. What does not look right goes through it for its error message.

/** The memory behind `memory`, which must be writable when it is written and belong to the communicator's device. */
export function memoryAt(
  memory: MemoryLike,
  place: Place,
  api: string,
  parameter: string,
  written: boolean,
): MemoryRange {
  let range = memory?.[memoryProtocol]
  if (!isPlainRange(range)) range = toMemoryRange(memory, api, parameter)
  if (range.deviceOrdinal !== place.deviceOrdinal) throw wrongDevice(api, parameter, range.deviceOrdinal, place)
  if (range.context !== place.context && range.context !== 0n) throw wrongContext(api, parameter, place)
  if (range.access !== undefined) requireGranted(place.context, place.deviceOrdinal, range, api, parameter)
  bits64[0] = range.address
  if (bits64[0] !== range.address)
    throw new RangeError(`${api}: ${parameter} must have an address of 64 bits, not ${range.address}`)
  if (written && range.readOnly === true)
    throw new TypeError(`${api}: ${parameter} must be memory that can be written to, not read-only memory`)
  return range
}

/**
 * Whether nothing is left to check but what the call depends on: contiguous, and of the version that knows nothing
 * else.
 */
function isPlainRange(range: MemoryRange | null | undefined): range is MemoryRange {
  if (range === undefined || range === null || range.version !== 0 || typeof range.address !== 'bigint') return false
  return (range.strides ?? range.stream ?? range.shape) === undefined
}

/** The stream behind `stream`, which waits for what is pending on the operands of its call. */
export function queueFor(
  stream: StreamArgument | undefined,
  place: Place,
  api: string,
  ...operands: readonly (MemoryRange | undefined)[]
): StreamHandle {
  const handle = streamHandleAt(stream, place, api)
  for (const range of operands) if (range !== undefined) orderBehind(handle.handle, place.context, range)
  return handle
}

/** The `cudaStream_t` behind `stream`. A bare handle is taken at its word. */
export function streamAt(
  stream: StreamArgument | undefined,
  place: Place,
  api: string,
  ...operands: readonly (MemoryRange | undefined)[]
): cudaStream_t {
  return queueFor(stream, place, api, ...operands).handle as cudaStream_t
}

/** What a missing stream means: that of the innermost `Stream.use` of the context, else the default stream. */
function streamLeftOut({ context }: Place, api: string): StreamArgument {
  return (missingStreams.areDefault ? undefined : boundStreamOf(context, api)) ?? null
}

/** What the stream protocol tells of `stream`, checked. */
export function streamHandleAt(given: StreamArgument | undefined, place: Place, api: string): StreamHandle {
  const stream = given === undefined ? streamLeftOut(place, api) : given
  let handle: StreamHandle | undefined
  try {
    handle = typeof stream === 'object' && stream !== null ? (stream as StreamLike)[streamProtocol] : undefined
  } catch (error) {
    if (!isRevoked(stream)) throw error
  }
  if (handle === undefined || handle === null || handle.version !== 0 || typeof handle.handle !== 'bigint') {
    handle = toStreamHandle(stream, api, 'stream')
  }
  if (handle.deviceOrdinal !== place.deviceOrdinal && handle.deviceOrdinal !== -1)
    throw wrongDevice(api, 'stream', handle.deviceOrdinal, place)
  if (handle.context !== place.context && handle.context !== 0n) throw wrongContext(api, 'stream', place)
  bits64[0] = handle.handle
  if (bits64[0] !== handle.handle)
    throw new RangeError(`${api}: stream must have a handle of 64 bits, not ${handle.handle}`)
  return handle
}

/** The dtype of a call: the one the buffers carry, or the one that was named for buffers that carry none. */
export function wireTypeOf(
  first: MemoryRange,
  second: MemoryRange | undefined,
  dtype: DType | undefined,
  api: string,
): WireType {
  const found = dtype ?? first.dtype ?? second?.dtype
  if (found === undefined) throw new TypeError(`${api}: dtype must be named, since the buffers carry none`)
  const wire = requireKeyOf(found, api, 'dtype', wireTypes)
  checkDType(first, wire, api)
  if (second !== undefined) checkDType(second, wire, api)
  return wire
}

function checkDType(range: MemoryRange, wire: WireType, api: string): void {
  if (range.dtype !== undefined && range.dtype !== wire.dtype) {
    throw new TypeError(
      `${api}: a buffer of ${range.dtype} where ${wire.dtype} is needed; both must have the same dtype`,
    )
  }
  // A kernel that reads elements across their boundaries takes the context with it.
  bits64[0] = range.address
  if ((halves[0] as number) % wire.bytes !== 0) {
    throw new RangeError(`${api}: memory at 0x${range.address.toString(16)} is not aligned for ${wire.dtype}`)
  }
}

/** Whole elements of `wire` that fit into a range. */
export function elementsOf(range: MemoryRange, wire: WireType): number {
  return Math.floor(range.byteLength / wire.bytes)
}

/** Throws unless `range` has room for `count` elements. */
export function checkRoom(range: MemoryRange, count: number, wire: WireType, api: string, parameter: string): void {
  // Written so that a byteLength that is not a number fails as well.
  if (count * wire.bytes <= range.byteLength) return
  throw new RangeError(
    `${api}: ${count} elements of ${wire.dtype} are ${count * wire.bytes} bytes, ${parameter} has ${range.byteLength}`,
  )
}

const exact = 2 ** 53

/** Through memory, because V8 makes a call of `Number(bigint)`. */
function addressAsNumber(address: bigint): number {
  bits64[0] = address
  return (halves[1] as number) * 2 ** 32 + (halves[0] as number)
}

/** Throws when two ranges share bytes; `allowed` is the one distance from send to recv at which NCCL works in place. */
export function checkOverlap(
  send: MemoryRange,
  sendBytes: number,
  recv: MemoryRange,
  recvBytes: number,
  allowed: number,
  api: string,
): void {
  const from = addressAsNumber(send.address)
  const to = addressAsNumber(recv.address)
  // Numbers below 2^53 are exact, and so is every address a program has; bigints take several times as long.
  const distance = from < exact && to < exact ? to - from : Number(recv.address - send.address)
  if (distance === allowed || distance >= sendBytes || -distance >= recvBytes || sendBytes === 0 || recvBytes === 0)
    return
  throw new RangeError(`${api}: send and recv overlap without being in place`)
}

function wrongDevice(api: string, parameter: string, found: number, place: Place): TypeError {
  const where = found === -1 ? 'is host memory' : `belongs to device ${found}`
  return new TypeError(`${api}: ${parameter} ${where}, the communicator to device ${place.deviceOrdinal}`)
}

function wrongContext(api: string, parameter: string, place: Place): TypeError {
  return new TypeError(
    `${api}: ${parameter} belongs to another context of device ${place.deviceOrdinal}; NCCL works in the primary context`,
  )
}
