import { copyInSlices } from '@shoal/driver/basics'
import { NativeMemory, nextTurn } from '@shoal/ffi'
import type { nvshmem_float_iput, nvshmemx_float_iput_on_stream } from '@shoal/nvshmem-sys'
import {
  type DType,
  dtypeInfo,
  isMemoryLike,
  type OptionKeys,
  requireCount,
  requireInteger,
  requireOptions,
  type WaitOptions,
  waitKeys,
} from '@shoal/types'
import { sizedFamily } from '../families.js'
import { requireBytesFor } from '../heap/hostCopies.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import {
  type LocalMemory,
  type LocalOperand,
  localAt,
  requireDType,
  requireSameDType,
  type StreamOperand,
  streamAt,
  symmetricAt,
  transferRoles,
} from '../operands.js'
import { waitOf } from '../queue/callQueue.js'
import type { LiveSession } from '../queue/liveSession.js'
import { startOnStream } from '../queue/onStream.js'
import { callSyncBehind, type Pending, runBehind } from '../queue/runBehind.js'

/** Options of a transfer of elements at equal distances. */
export interface StridedOptions {
  /** The other PE, from 0 to `peCount` - 1. */
  readonly pe: number
  /** Number of elements to transfer. */
  readonly count: number
  /** Distance between two elements of the target, in elements. Default: 1. */
  readonly targetStride?: number | undefined
  /** Distance between two elements of the source, in elements. Default: 1. */
  readonly sourceStride?: number | undefined
}

/** {@link StridedOptions} with limits of the wait. */
export type WaitingStridedOptions = StridedOptions & WaitOptions

/** {@link StridedOptions} with a stream. */
export interface StreamStridedOptions extends StridedOptions {
  /**
   * Stream to queue on: a stream object, a bare `cudaStream_t`, or null for the default stream. Default: the stream of
   * `Stream.use`, else the default stream.
   */
  readonly stream?: StreamOperand | undefined
}

const stridedKeys: OptionKeys<StridedOptions> = { pe: true, count: true, targetStride: true, sourceStride: true }
const waitingStridedKeys: OptionKeys<WaitingStridedOptions> = { ...stridedKeys, ...waitKeys }
const streamStridedKeys: OptionKeys<StreamStridedOptions> = { ...stridedKeys, stream: true }

type Direction = 'put' | 'get'
type HostCall = typeof nvshmem_float_iput
type StreamCall = typeof nvshmemx_float_iput_on_stream

const families = {
  put: sizedFamily<HostCall>('nvshmem_', 'nvshmem_iput', '_iput', ''),
  get: sizedFamily<HostCall>('nvshmem_', 'nvshmem_iget', '_iget', ''),
}

const onStream = {
  put: sizedFamily<StreamCall>('nvshmemx_', 'nvshmemx_iput', '_iput_on_stream', '_on_stream'),
  get: sizedFamily<StreamCall>('nvshmemx_', 'nvshmemx_iget', '_iget_on_stream', '_on_stream'),
}

interface Checked {
  readonly dtype: DType
  readonly count: number
  readonly pe: number
  readonly targetStride: number
  readonly sourceStride: number
  readonly remote: bigint
  /** Address of the local side; 0n for an array. */
  readonly local: bigint
  readonly array: Uint8Array | undefined
  readonly pending: Pending
}

function check<O extends StridedOptions>(
  live: LiveSession,
  direction: Direction,
  target: unknown,
  source: unknown,
  options: O,
  keys: OptionKeys<O>,
  arrays: boolean,
  api: string,
): Checked {
  requireOptions(options, api, keys)
  const pe = requireInteger(options.pe, api, 'pe', 0, live.peCount - 1)
  const count = requireCount(options.count, api, 'count')
  const { targetStride: given = 1, sourceStride: taken = 1 } = options
  const targetStride = requireCount(given, api, 'targetStride', 1)
  const sourceStride = requireCount(taken, api, 'sourceStride', 1)
  const isPut = direction === 'put'
  const roles = transferRoles[direction]
  const remote = symmetricAt(live, isPut ? target : source, api, roles.remote)
  const dtype = requireDType(remote.dtype, api, roles.remote)
  const localSide = isPut ? source : target
  requireSpan(remote.byteLength, dtype, count, isPut ? targetStride : sourceStride, roles.remote, api)
  let local = 0n
  let pending: Pending
  let array: Uint8Array | undefined
  let localBytes: number
  if (arrays && !isMemoryLike(localSide)) {
    array = requireBytesFor(localSide, dtype, api, roles.local)
    localBytes = array.byteLength
  } else {
    const range = localAt(live, localSide, api, roles.local, !isPut)
    requireSameDType(range, dtype, roles, api)
    local = range.address
    pending = range.stream
    localBytes = range.byteLength
  }
  requireSpan(localBytes, dtype, count, isPut ? sourceStride : targetStride, roles.local, api)
  return { dtype, count, pe, targetStride, sourceStride, remote: remote.address, local, array, pending }
}

/** Throws unless `count` elements `stride` apart fit in `bytes`. */
function requireSpan(bytes: number, dtype: DType, count: number, stride: number, parameter: string, api: string): void {
  const length = Math.floor(bytes / dtypeInfo(dtype).bytes)
  const span = count === 0 ? 0 : (count - 1) * stride + 1
  if (span <= length) return
  throw new RangeError(
    `${api}: ${count} elements of ${dtype} in steps of ${stride} reach over ${span} elements, ${parameter} has ${length}`,
  )
}

function invoke(direction: Direction, checked: Checked, local: bigint | Uint8Array): void {
  const call = families[direction](checked.dtype) as HostCall
  const { remote, targetStride, sourceStride, count, pe } = checked
  if (direction === 'put') call(remote, local, targetStride, sourceStride, count, pe)
  else call(local, remote, targetStride, sourceStride, count, pe)
}

export async function strided(
  live: LiveSession,
  direction: Direction,
  target: SymmetricBuffer | LocalOperand,
  source: SymmetricBuffer | LocalOperand,
  options: WaitingStridedOptions,
): Promise<void> {
  const api = `Session.${direction}Strided`
  const checked = check(live, direction, target, source, options, waitingStridedKeys, true, api)
  const wait = waitOf(options)
  const { array } = checked
  if (array === undefined) {
    const record = (): void => invoke(direction, checked, checked.local)
    await runBehind(live, checked.pending, api, record, { wait, keep: [target, source], operands: [target, source] })
    return
  }
  // Calls on another thread accept no memory of the JavaScript heap.
  const memory = NativeMemory.allocate(array.byteLength)
  try {
    // A get needs no copy of the array: only the received elements are written back.
    const after = direction === 'put' ? copyInSlices(memory.bytes, array, `${api}: source`) : undefined
    const keep = [memory, target, source]
    await live.queue.run(api, () => invoke(direction, checked, memory.address), { wait, keep, after })
    if (direction === 'get') await scatter(memory.bytes, array, checked)
  } finally {
    live.queue.free(memory)
  }
}

/** Copies only the received elements, because the program may have written the others meanwhile. */
async function scatter(bytes: Uint8Array, target: Uint8Array, { dtype, count, targetStride }: Checked): Promise<void> {
  const size = dtypeInfo(dtype).bytes
  for (let index = 0; index < count; index += 1) {
    // Yields after some tenths of a millisecond, so that the event loop is not blocked noticeably.
    if (index % 4096 === 4095) await nextTurn()
    const at = index * targetStride * size
    target.set(bytes.subarray(at, at + size), at)
  }
}

export function stridedSync(
  live: LiveSession,
  direction: Direction,
  target: SymmetricBuffer | LocalOperand,
  source: SymmetricBuffer | LocalOperand,
  options: StridedOptions,
): void {
  const api = `Session.${direction}StridedSync`
  const checked = check(live, direction, target, source, options, stridedKeys, true, api)
  const local = checked.array ?? checked.local
  callSyncBehind(live, checked.pending, api, () => invoke(direction, checked, local))
}

export function queueStrided(
  live: LiveSession,
  direction: Direction,
  target: LocalMemory,
  source: LocalMemory,
  options: StreamStridedOptions,
): Promise<void> {
  const api = `Session.${direction}StridedOnStream`
  const checked = check(live, direction, target, source, options, streamStridedKeys, false, api)
  const stream = streamAt(live, options.stream, api, target, source)
  const call = onStream[direction](checked.dtype) as StreamCall
  const { remote, local, targetStride, sourceStride, count, pe } = checked
  const [to, from] = direction === 'put' ? [remote, local] : [local, remote]
  const queue = (): void => call(to, from, targetStride, sourceStride, count, pe, stream)
  return startOnStream(live, { api, stream, given: options.stream, call: queue, uses: [target, source] })
}
