import { type CUstream, cuStreamGetCtx } from '@shoal/cuda-sys/driver'
import { boundStreamOf, missingStreams, nameOfType, orderBehind, requireGranted } from '@shoal/driver/basics'
import type { cudaStream_t } from '@shoal/nvshmem-sys'
import {
  type DType,
  dtypeInfo,
  type ElementType,
  elementLayout,
  isMemoryLike,
  isRevoked,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  otherCopy,
  outOfRange,
  requireCount,
  requireInteger,
  type StorageArray,
  type StreamArgument,
  type StreamHandle,
  type StreamLike,
  streamProtocol,
  toMemoryRange,
  toStreamHandle,
  wrongType,
} from '@shoal/types'
import { checkCuda } from './errors.js'
import { requireBytesFor } from './heap/hostCopies.js'
import { SymmetricBuffer } from './heap/symmetricBuffer.js'
import type { LiveSession } from './queue/liveSession.js'
import type { Pending } from './queue/runBehind.js'

/** The local side of a transfer: symmetric, device or page-locked memory. */
export type LocalMemory = SymmetricBuffer | MemoryLike

/** The local side of a synchronous or awaited transfer, which may also be a typed array. */
export type LocalOperand = LocalMemory | StorageArray

/**
 * A stream: an object with a stream, a bare handle, or null for the default stream.
 *
 * If a stream object is disposed of while a call waits for its turn, the call rejects. A bare handle must stay valid
 * until the call was made.
 */
export type StreamOperand = StreamArgument

/** Returns symmetric memory of this session, checked. */
export function symmetricAt(live: LiveSession, memory: unknown, api: string, parameter: string): SymmetricBuffer {
  if (!SymmetricBuffer._is(memory)) {
    throw (
      otherCopy(memory, api, parameter, SymmetricBuffer) ??
      wrongType(api, parameter, 'symmetric memory (see Session.allocate)', memory)
    )
  }
  const allocation = memory._allocation
  allocation.requireUsable(api)
  if (allocation.live !== live) throw new TypeError(`${api}: ${parameter} belongs to another session`)
  return memory
}

/** Returns local memory that NVSHMEM can reach. */
export function localAt(
  live: LiveSession,
  memory: unknown,
  api: string,
  parameter: string,
  written: boolean,
): MemoryRange {
  let range: MemoryRange | undefined
  try {
    range = (memory as Partial<MemoryLike> | null | undefined)?.[memoryProtocol]
  } catch (error) {
    if (!isRevoked(memory)) throw error
  }
  if (
    range === undefined ||
    range === null ||
    range.version !== 0 ||
    typeof range.address !== 'bigint' ||
    (range.strides ?? range.stream ?? range.shape) !== undefined
  ) {
    range = toMemoryRange(memory as MemoryLike, api, parameter)
  }
  if (range.deviceOrdinal !== live.deviceOrdinal && range.deviceOrdinal !== -1) {
    throw new TypeError(
      `${api}: ${parameter} belongs to device ${range.deviceOrdinal}, the session to device ${live.deviceOrdinal}`,
    )
  }
  if (range.context !== live.context && range.context !== 0n) {
    throw otherContext(live, parameter, api)
  }
  if (range.access !== undefined) requireGranted(live.context, live.deviceOrdinal, range, api, parameter)
  if (written && range.readOnly === true) throw new TypeError(`${api}: ${parameter} is read-only memory`)
  return range
}

/** Returns a stream's `cudaStream_t`, ordered after pending work on its checked operands. */
export function streamAt(
  live: LiveSession,
  stream: StreamOperand | undefined,
  api: string,
  ...operands: readonly unknown[]
): cudaStream_t {
  const { handle } = streamHandleAt(live, stream, api)
  for (const operand of operands) {
    const range = (operand as Partial<MemoryLike> | null | undefined)?.[memoryProtocol]
    if (range !== undefined) orderBehind(handle, live.context, range)
  }
  return handle as cudaStream_t
}

/** Returns a stream's checked protocol answer. */
export function streamHandleAt(live: LiveSession, given: StreamOperand | undefined, api: string): StreamHandle {
  const left = missingStreams.areDefault || given !== undefined ? undefined : boundStreamOf(live.context, api)
  const stream = given ?? left ?? null
  let handle: StreamHandle | undefined
  try {
    handle = typeof stream === 'object' && stream !== null ? (stream as StreamLike)[streamProtocol] : undefined
  } catch (error) {
    if (!isRevoked(stream)) throw error
  }
  if (handle === undefined || handle === null || handle.version !== 0 || typeof handle.handle !== 'bigint') {
    handle = toStreamHandle(stream, api, 'stream')
    if (typeof stream === 'bigint') requireStream(live, stream, api)
  }
  if (handle.deviceOrdinal !== live.deviceOrdinal && handle.deviceOrdinal !== -1) {
    throw new TypeError(
      `${api}: the stream belongs to device ${handle.deviceOrdinal}, the session to device ${live.deviceOrdinal}`,
    )
  }
  if (handle.context !== live.context && handle.context !== 0n) {
    throw otherContext(live, 'the stream', api)
  }
  return handle
}

/** Largest of the handles that mean default streams. */
const lastDefaultStream = 2n
/** Handles are addresses, and no process maps memory in the first page. */
const firstAddress = 4096n

/** Checks a bare handle with the driver, because NVSHMEM ends the process for an invalid stream. */
function requireStream(live: LiveSession, handle: bigint, api: string): void {
  if (handle <= lastDefaultStream) return
  if (handle < firstAddress) throw outOfRange(api, 'stream', 'a CUstream', handle)
  const context = new BigUint64Array(1)
  checkCuda(
    live.queue.inContext(() => cuStreamGetCtx(handle as CUstream, context)),
    'cuStreamGetCtx',
  )
  if (context[0] !== live.context) throw otherContext(live, 'the stream', api)
}

function otherContext({ deviceOrdinal }: LiveSession, what: string, api: string): TypeError {
  return new TypeError(
    `${api}: ${what} belongs to another context of device ${deviceOrdinal}; NVSHMEM works in the primary context`,
  )
}

/** A transfer of elements between symmetric memory of a PE and memory of this process. */
export interface Transfer {
  readonly dtype: DType
  readonly count: number
  readonly bytes: number
  readonly remote: bigint
  /** Address of the local side, if it has one; otherwise see {@link array}. */
  readonly local: bigint
  readonly array: Uint8Array | undefined
  /** Producer stream of the local side. */
  readonly pending: Pending
}

/** Which side of a transfer is remote, and which local. */
export interface TransferRoles {
  /** The side in the memory of the other PE. */
  readonly remote: 'target' | 'source'
  readonly local: 'target' | 'source'
}

/** A put writes to the target of another PE; a get reads its source. */
export const transferRoles: { readonly put: TransferRoles; readonly get: TransferRoles } = {
  put: { remote: 'target', local: 'source' },
  get: { remote: 'source', local: 'target' },
}

/**
 * Checks both sides of a transfer and the number of elements. Without a number, the sides must have the same size.
 *
 * @param arrays whether the local side may be an array of the JavaScript heap.
 */
export function checkTransfer(
  live: LiveSession,
  roles: TransferRoles,
  remoteOperand: unknown,
  localOperand: unknown,
  arrays: boolean,
  requested: number | undefined,
  api: string,
): Transfer {
  const remote = symmetricAt(live, remoteOperand, api, roles.remote)
  const { dtype, byteLength } = remote
  let local = 0n
  let pending: Pending
  let localBytes: number
  let array: Uint8Array | undefined
  if (arrays && !isMemoryLike(localOperand)) {
    array = requireBytesFor(localOperand, dtype, api, roles.local)
    localBytes = array.byteLength
  } else {
    if (ArrayBuffer.isView(localOperand)) throw arrayRefused(localOperand, roles, api)
    const range = localAt(live, localOperand, api, roles.local, roles.local === 'target')
    if (range.dtype !== dtype) requireSameDType(range, dtype, roles, api)
    local = range.address
    pending = range.stream
    localBytes = range.byteLength
  }
  if (requested === undefined) {
    if (localBytes !== byteLength) {
      throw new RangeError(
        `${api}: ${roles.remote} has ${byteLength} bytes, ${roles.local} ${localBytes}; ` +
          'pass count, or use slice(), to select the elements',
      )
    }
    const units = unitsOf(dtype, remote.length, byteLength)
    return { ...units, bytes: byteLength, remote: remote._address, local, array, pending }
  }
  const count = requireCount(requested, api, 'count')
  requireRoom(byteLength, count, dtype, roles.remote, api)
  requireRoom(localBytes, count, dtype, roles.local, api)
  const bytes = count * elementLayout(dtype).bytes
  return { ...unitsOf(dtype, count, bytes), bytes, remote: remote._address, local, array, pending }
}

/** Returns dtype and count for NVSHMEM, which transfers structs, arrays and tuples as bytes. */
export function unitsOf(
  dtype: ElementType,
  count: number,
  bytes: number,
): { readonly dtype: DType; readonly count: number } {
  return typeof dtype === 'string' ? { dtype, count } : { dtype: 'u8', count: bytes }
}

/**
 * Requires a dtype, for operations that compute or access single elements.
 *
 * @throws TypeError for structs, arrays and tuples
 */
export function requireDType(dtype: ElementType, api: string, parameter: string): DType {
  if (typeof dtype === 'string') return dtype
  throw wrongType(api, parameter, 'memory of a dtype (reinterpret() it)', nameOfType(dtype))
}

function arrayRefused(local: ArrayBufferView, roles: TransferRoles, api: string): TypeError {
  return new TypeError(
    `${api}: ${roles.local} must be memory that stays in place until the work is done, such as a PinnedBuffer or ` +
      `device memory; an ordinary ${local.constructor.name} works only for calls that wait for the transfer`,
  )
}

export function requireSameDType(
  range: MemoryRange,
  dtype: ElementType,
  roles: { readonly local: string; readonly remote: string },
  api: string,
): void {
  if (range.dtype === dtype) return
  if (range.dtype !== undefined) {
    throw new TypeError(
      `${api}: ${roles.local} has elements of ${range.dtype}, ${roles.remote} of ${nameOfType(dtype)}; both must be the same`,
    )
  }
  const { alignment } = elementLayout(dtype)
  if (range.address % BigInt(alignment) !== 0n) {
    throw new RangeError(`${api}: ${roles.local} is not aligned for ${nameOfType(dtype)}`)
  }
}

/** Throws unless `bytes` have room for `count` elements. */
export function requireRoom(bytes: number, count: number, dtype: ElementType, parameter: string, api: string): void {
  const needed = count * elementLayout(dtype).bytes
  if (needed <= bytes) return
  throw new RangeError(
    `${api}: ${count} elements of ${nameOfType(dtype)} are ${needed} bytes, ${parameter} has ${bytes}`,
  )
}

/** Returns the element of a buffer for an operation on one element. */
export function elementAt(
  live: LiveSession,
  memory: unknown,
  index: number | undefined,
  api: string,
  parameter: string,
  indexName = 'index',
): { readonly address: bigint; readonly dtype: DType } {
  const buffer = symmetricAt(live, memory, api, parameter)
  if (buffer.length === 0) throw outOfRange(api, parameter, 'memory with elements', buffer)
  const at = index === undefined ? 0 : requireInteger(index, api, indexName, 0, buffer.length - 1)
  const dtype = requireDType(buffer.dtype, api, parameter)
  return { address: buffer.address + BigInt(at * dtypeInfo(dtype).bytes), dtype }
}
