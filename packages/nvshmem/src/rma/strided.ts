import { NativeMemory } from '@shoal/ffi'
import type { nvshmem_float_iput, nvshmemx_float_iput_on_stream } from '@shoal/nvshmem-sys'
import { type DType, dtypeInfo, isMemoryLike, type StorageArray } from '@shoal/types'
import { requireCount, requireOptions, requirePe } from '../checks.js'
import { sizedFamily } from '../families.js'
import { bytesOf, requireArrayFor } from '../heap/hostCopies.js'
import type { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import {
  type LocalMemory,
  type LocalOperand,
  localAt,
  requireSameDType,
  type StreamOperand,
  streamAt,
  symmetricAt,
  transferRoles,
} from '../operands.js'
import type { WaitOptions } from '../queue/callQueue.js'
import type { LiveSession } from '../queue/liveSession.js'

/** A transfer of every so manieth element. */
export interface StridedOptions {
  /** The other PE, from 0 to `peCount` - 1. */
  readonly pe: number
  /** Number of elements that are moved. */
  readonly count: number
  /** Distance between two elements of the target, in elements. Default 1. */
  readonly targetStride?: number | undefined
  /** Distance between two elements of the source, in elements. Default 1. */
  readonly sourceStride?: number | undefined
}

/** The same, and how long to wait. */
export type WaitingStridedOptions = StridedOptions & WaitOptions

/** The same, and on which stream. */
export interface StreamStridedOptions extends StridedOptions {
  /** Stream it is queued on: a stream object, a bare `cudaStream_t`, or null for the default stream. */
  readonly stream: StreamOperand
}

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
  /** Address of the local side, 0n where it is an array. */
  readonly local: bigint
  readonly array: StorageArray | undefined
}

function check(
  live: LiveSession,
  direction: Direction,
  target: unknown,
  source: unknown,
  options: StridedOptions,
  arrays: boolean,
  api: string,
): Checked {
  requireOptions(options, api, '{ pe, count, targetStride, sourceStride }')
  const pe = requirePe(options.pe, live.peCount, api)
  const count = requireCount(options.count, 'count', 0, api)
  const targetStride = requireCount(options.targetStride ?? 1, 'targetStride', 1, api)
  const sourceStride = requireCount(options.sourceStride ?? 1, 'sourceStride', 1, api)
  const isPut = direction === 'put'
  const roles = transferRoles[direction]
  const remote = symmetricAt(live, isPut ? target : source, api, roles.remote)
  const { dtype } = remote
  const localSide = isPut ? source : target
  requireSpan(remote.byteLength, dtype, count, isPut ? targetStride : sourceStride, roles.remote, api)
  let local = 0n
  let array: StorageArray | undefined
  let localBytes: number
  if (arrays && !isMemoryLike(localSide)) {
    array = requireArrayFor(localSide, dtype, api, roles.local)
    localBytes = array.byteLength
  } else {
    const range = localAt(live, localSide, api, roles.local, !isPut)
    requireSameDType(range, dtype, roles, api)
    local = range.address
    localBytes = range.byteLength
  }
  requireSpan(localBytes, dtype, count, isPut ? sourceStride : targetStride, roles.local, api)
  return { dtype, count, pe, targetStride, sourceStride, remote: remote.address, local, array }
}

/** Throws unless `count` elements `stride` apart lie within so many bytes. */
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
  const checked = check(live, direction, target, source, options, true, api)
  const { array } = checked
  if (array === undefined) {
    const keep = [target, source]
    await live.queue.run(api, () => invoke(direction, checked, checked.local), { wait: options, keep })
    return
  }
  // Calls on another thread take no memory of the JavaScript heap. What lies between the elements stays as it is.
  const memory = NativeMemory.allocate(array.byteLength)
  try {
    memory.bytes.set(bytesOf(array))
    const keep = [memory, target, source]
    await live.queue.run(api, () => invoke(direction, checked, memory.address), { wait: options, keep })
    if (direction === 'get') scatter(memory.bytes, array, checked)
  } finally {
    memory.dispose()
  }
}

/** Copies the elements that were got, and only those: the program may have written the others in the meantime. */
function scatter(bytes: Uint8Array, array: StorageArray, { dtype, count, targetStride }: Checked): void {
  const size = dtypeInfo(dtype).bytes
  const target = bytesOf(array)
  for (let index = 0; index < count; index += 1) {
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
  const checked = check(live, direction, target, source, options, true, api)
  const local = checked.array === undefined ? checked.local : bytesOf(checked.array)
  live.queue.callSync(api, () => invoke(direction, checked, local))
}

export function queueStrided(
  live: LiveSession,
  direction: Direction,
  target: LocalMemory,
  source: LocalMemory,
  options: StreamStridedOptions,
): Promise<void> {
  const api = `Session.${direction}StridedOnStream`
  const checked = check(live, direction, target, source, options, false, api)
  const stream = streamAt(live, options.stream, api)
  const call = onStream[direction](checked.dtype) as StreamCall
  const { remote, local, targetStride, sourceStride, count, pe } = checked
  const [to, from] = direction === 'put' ? [remote, local] : [local, remote]
  return live.queue.start(api, () => call(to, from, targetStride, sourceStride, count, pe, stream), [target, source])
}
