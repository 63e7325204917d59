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

/** Properties of a dtype that every collective needs. */
export interface WireType {
  readonly dtype: DType
  readonly bytes: number
  /** `ncclDataType_t`; undefined if NCCL cannot reduce such elements. */
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

/** Where the operands of a call must be. */
export interface Place {
  readonly deviceOrdinal: number
  readonly context: bigint
}

// The range is read directly from the protocol, and only what the call depends on is checked: the general check of
// @shoal/types costs as much as the call itself. Unusual ranges go through the general check for its error message.

/** Returns the range of `memory` on the communicator's device, which must be writable if `written`. */
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

/** True for a range that is contiguous, of version 0, and needs no further general checks. */
function isPlainRange(range: MemoryRange | null | undefined): range is MemoryRange {
  if (range === undefined || range === null || range.version !== 0 || typeof range.address !== 'bigint') return false
  return (range.strides ?? range.stream ?? range.shape) === undefined
}

/** Returns a stream's handle, ordered after pending work on the operands. */
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

/** Returns the `cudaStream_t` of `stream`. A bare handle is not checked. */
export function streamAt(
  stream: StreamArgument | undefined,
  place: Place,
  api: string,
  ...operands: readonly (MemoryRange | undefined)[]
): cudaStream_t {
  return queueFor(stream, place, api, ...operands).handle as cudaStream_t
}

/** Returns the stream for a missing option: the context's innermost `Stream.use`, else the default stream. */
function streamLeftOut({ context }: Place, api: string): StreamArgument {
  return (missingStreams.areDefault ? undefined : boundStreamOf(context, api)) ?? null
}

/** Returns a stream's checked protocol answer. */
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

/** Returns the dtype of a call: that of the buffers, or the given one if they have none. */
export function wireTypeOf(
  first: MemoryRange,
  second: MemoryRange | undefined,
  dtype: DType | undefined,
  api: string,
): WireType {
  const found = dtype ?? first.dtype ?? second?.dtype
  if (found === undefined) throw new TypeError(`${api}: dtype must be given, because the buffers have none`)
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
  // A kernel that reads misaligned elements destroys the context.
  bits64[0] = range.address
  if ((halves[0] as number) % wire.bytes !== 0) {
    throw new RangeError(`${api}: memory at 0x${range.address.toString(16)} is not aligned for ${wire.dtype}`)
  }
}

/** Returns how many whole elements of `wire` fit in a range. */
export function elementsOf(range: MemoryRange, wire: WireType): number {
  return Math.floor(range.byteLength / wire.bytes)
}

/** Throws unless `range` has room for `count` elements. */
export function checkRoom(range: MemoryRange, count: number, wire: WireType, api: string, parameter: string): void {
  // In this form, the check also fails for a byteLength that is not a number.
  if (count * wire.bytes <= range.byteLength) return
  throw new RangeError(
    `${api}: ${count} elements of ${wire.dtype} are ${count * wire.bytes} bytes, ${parameter} has ${range.byteLength}`,
  )
}

const exact = 2 ** 53

/** Converts through memory, because V8 compiles `Number(bigint)` to a call. */
function addressAsNumber(address: bigint): number {
  bits64[0] = address
  return (halves[1] as number) * 2 ** 32 + (halves[0] as number)
}

/**
 * Throws if two ranges overlap.
 *
 * The distance `allowed` is exempt, because NCCL works in place there.
 */
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
  // Numbers below 2^53 are exact, and addresses of programs are smaller; bigints are several times slower.
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
