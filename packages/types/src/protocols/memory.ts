import { isInstance } from '../anyValue.js'
import { requireOptions } from '../arguments/options.js'
import { outOfRange, requireInteger, wrongType } from '../arguments/scalars.js'
import { type DType, dtypeInfo, isDType } from '../dtypes/dtype.js'
import { withJson } from '../json.js'
import { answerOf, refuseForged } from '../publicObject.js'
import { checkAddress, checkCount, checkOrdinal, checkSameProcess, checkVersion, isPlain, offers } from './checks.js'
import { checkedLayout, isContiguous, type Layout } from './layout.js'

/** Handle of the per-thread default stream; each thread has a different stream. */
const perThreadStream = 2n

/**
 * Key of the memory protocol: `Symbol.for('cuda.memory')`.
 *
 * A global symbol, so that offering memory needs no import of Shoal.
 */
export const memoryProtocol: unique symbol = Symbol.for('cuda.memory')

/**
 * Answer of the memory protocol: memory that CUDA functions reach by address.
 *
 * A caller that keeps the memory must keep the object, and read the answer again at each use. The protocol has no
 * function that releases memory. Only objects that own imported memory, such as those of `fromDLPack` and `receive`,
 * release it with `dispose()`.
 */
export interface MemoryRange {
  /**
   * Version of the protocol. In version 1, consumers must read `strides` and `stream`.
   *
   * A consumer of version 0 would treat such memory as contiguous and ready, so it must refuse version 1.
   */
  readonly version: 0 | 1
  /** Address of the first byte and the first element: a `CUdeviceptr`, or a host address if `deviceOrdinal` is -1. */
  readonly address: bigint
  /** Length in bytes. */
  readonly byteLength: number
  /** Ordinal of the device that holds the memory; -1 for host memory. */
  readonly deviceOrdinal: number
  /** `CUcontext` of the memory; 0n if it belongs to no context. */
  readonly context: bigint
  /** Type of the elements, if the memory has one. */
  readonly dtype?: DType
  /** Number of elements, if the memory has a dtype. */
  readonly length?: number
  /** True if writing to the memory is an error. */
  readonly readOnly?: boolean
  /** Extents in elements, outermost first, if the memory has a dtype. Default: one dimension of `length`. */
  readonly shape?: readonly number[] | undefined
  /**
   * Distance between neighbours of each dimension, in elements; never negative.
   *
   * Elements as in DLPack, not bytes as in `__cuda_array_interface__`. `null` or absent: contiguous, the last dimension
   * fastest.
   */
  readonly strides?: readonly number[] | null | undefined
  /**
   * The `CUstream` on which work that produces the contents may be in flight.
   *
   * A consumer orders its own work after the work queued on this stream. 1n is the legacy default stream, 2n the
   * per-thread default stream; 0n is refused because it could mean either of them. `null` or absent: no work is
   * pending. The same as in version 3 of `__cuda_array_interface__`.
   */
  readonly stream?: bigint | null | undefined
  /**
   * `'granted'`: each device needs granted access to this mapped memory (`cuMemSetAccess`).
   *
   * This includes the device of `deviceOrdinal`; a launch asks the driver. Absent: the device of the memory may always
   * use it.
   */
  readonly access?: 'granted' | undefined
}

/** Memory with the complete layout that {@link toStridedRange} returns. */
export interface StridedRange extends MemoryRange {
  /** Type of its elements. */
  readonly dtype: DType
  /** Number of elements. */
  readonly length: number
  /** Extents in elements. */
  readonly shape: readonly number[]
  /** Strides in elements. */
  readonly strides: readonly number[]
}

/**
 * An object that is, or has, memory that CUDA can reach.
 *
 * The property is a getter that throws `DisposedError` after the memory was freed.
 */
export interface MemoryLike {
  readonly [memoryProtocol]: MemoryRange
}

/** How another process opens the memory. */
export interface MemoryIpc {
  /** The 64 bytes of a `CUipcMemHandle`. */
  readonly handle: Uint8Array
  /** Offset of the memory within the range that the handle opens, in bytes. */
  readonly offset: number
}

/**
 * Memory as plain data for `postMessage` to another thread.
 *
 * An `advanced` IPC channel also carries it to another process.
 */
export interface MemoryDescriptor extends MemoryRange {
  /** Discriminates descriptors. */
  readonly kind: 'cuda.memory'
  /**
   * Id of the process in which the address is valid.
   *
   * This check prevents mistakes, not attacks. Accept descriptors only from threads of this process; use `receive` for
   * memory of other processes.
   */
  readonly process: number
  /** Present if other processes may open the memory. */
  readonly ipc?: MemoryIpc
}

/** True if a value offers the memory protocol. Does not run its getter. */
export function isMemoryLike(value: unknown): value is MemoryLike {
  return offers(value, memoryProtocol)
}

/**
 * Returns the range of contiguous memory that CUDA can reach.
 *
 * Accepts an object with the memory protocol or a descriptor from another thread of this process. Refuses memory with
 * gaps, which {@link toStridedRange} accepts.
 *
 * @param api - the function, and `name` its parameter, that an error names
 * @throws TypeError for any other value, or when the protocol's answer is malformed @throws RangeError when the numbers
 * of the answer contradict each other
 * @throws DisposedError when the memory was disposed
 */
export function toMemoryRange(
  memory: MemoryLike | MemoryDescriptor,
  api = 'toMemoryRange',
  name = 'memory',
): MemoryRange {
  const answer = checkedAnswer(memory, api, name)
  const { shape, strides, dtype, length } = answer
  if (shape === undefined && (strides === undefined || strides === null)) return answer
  const layout = layoutOf(answer, api, name)
  if (!isContiguous(layout)) {
    throw new RangeError(
      `${api}: ${name} must be contiguous, not with strides [${layout.strides}] for a shape of [${layout.shape}]: copy it first`,
    )
  }
  return length === undefined && dtype !== undefined ? { ...answer, length: layout.length } : answer
}

/**
 * Returns the range, shape and strides of memory with any layout.
 *
 * @throws as {@link toMemoryRange}; TypeError for memory without a dtype
 */
export function toStridedRange(
  memory: MemoryLike | MemoryDescriptor,
  api = 'toStridedRange',
  name = 'memory',
): StridedRange {
  const answer = checkedAnswer(memory, api, name)
  const { dtype, byteLength } = answer
  if (dtype === undefined)
    throw wrongType(api, `${name}.dtype`, 'the name of a dtype, which strides are counted in', dtype)
  const { shape, strides, length = Math.floor(byteLength / dtypeInfo(dtype).bytes) } = answer
  const isPlainList = shape === undefined && (strides === undefined || strides === null)
  const layout = isPlainList ? { shape: [length], strides: [1], length } : layoutOf(answer, api, name)
  return { ...answer, dtype, ...layout }
}

function layoutOf(answer: MemoryRange, api: string, name: string): Layout {
  const { byteLength, dtype, length, shape, strides } = answer
  if (dtype === undefined) throw wrongType(api, `${name}.dtype`, 'the name of a dtype where there is a shape', dtype)
  if (shape === undefined) throw wrongType(api, `${name}.shape`, 'an array where there are strides', shape)
  return checkedLayout({ byteLength, dtype, length, shape, strides }, api, name)
}

function checkedAnswer(memory: MemoryLike | MemoryDescriptor, api: string, name: string): MemoryRange {
  refuseForged(memory, api, name)
  if (isMemoryLike(memory)) return checkedRange(answerOf(memory, memoryProtocol, api, name), api, name)
  if (isPlain(memory, 'cuda.memory')) {
    checkSameProcess(memory, api, name, 'Open its IPC handle there instead of using its address.')
    return checkedRange(memory, api, name)
  }
  const error = wrongType(api, name, "an object with [Symbol.for('cuda.memory')]", memory)
  if (ArrayBuffer.isView(memory)) {
    error.message += '. Copy host arrays to the device first; copies and transfers take pinned memory as well.'
  }
  throw error
}

/**
 * Describes memory as plain data for `postMessage`.
 *
 * The sender must keep the memory alive; the descriptor does not.
 *
 * @param ipc how another process opens the memory; without this argument, the descriptor works only in threads of this
 * process
 * @throws TypeError when `memory` is not memory, or `ipc.handle` is not 64 bytes long
 * @example
 * worker.postMessage(describeMemory(buffer))
 */
export function describeMemory(memory: MemoryLike | MemoryDescriptor, ipc?: MemoryIpc): MemoryDescriptor {
  const answer = checkedAnswer(memory, 'describeMemory', 'memory')
  const { address, byteLength, deviceOrdinal, context, dtype, length, readOnly, shape, strides, stream, version } =
    answer
  const { access } = answer
  if (shape !== undefined || (strides !== undefined && strides !== null)) layoutOf(answer, 'describeMemory', 'memory')
  if (stream === perThreadStream) {
    throw wrongType(
      'describeMemory',
      'memory.stream',
      'one that other threads know too, not a default stream of this thread',
      stream,
    )
  }
  if (ipc !== undefined) {
    const { handle, offset } = requireOptions<MemoryIpc>(ipc, 'describeMemory', { handle: true, offset: true }, 'ipc')
    if (!isInstance(handle, Uint8Array) || handle.length !== 64) {
      throw wrongType('describeMemory', 'ipc.handle', 'a Uint8Array of 64 bytes', handle)
    }
    requireInteger(offset, 'describeMemory', 'ipc.offset', 0)
  }
  return withJson({
    kind: 'cuda.memory',
    version,
    process: process.pid,
    address,
    byteLength,
    deviceOrdinal,
    context,
    ...(dtype === undefined ? {} : { dtype }),
    ...(length === undefined ? {} : { length }),
    ...(readOnly === undefined ? {} : { readOnly }),
    ...(shape === undefined ? {} : { shape: [...shape] }),
    ...(strides === undefined || strides === null ? {} : { strides: [...strides] }),
    ...(stream === undefined || stream === null ? {} : { stream }),
    ...(access === undefined ? {} : { access }),
    ...(ipc === undefined ? {} : { ipc: { handle: ipc.handle.slice(), offset: ipc.offset } }),
  })
}

function checkedRange(answer: MemoryRange, api: string, name: string): MemoryRange {
  checkVersion(answer, 'cuda.memory', api, name, 1)
  const { address, byteLength, deviceOrdinal, context, dtype, length, strides, stream, access } = answer
  checkAddress(address, api, name, 'address')
  checkCount(byteLength, api, name, 'byteLength')
  checkOrdinal(deviceOrdinal, api, name)
  checkAddress(context, api, name, 'context')
  if (dtype !== undefined && !isDType(dtype)) throw wrongType(api, `${name}.dtype`, 'the name of a dtype', dtype)
  if (length !== undefined) {
    checkCount(length, api, name, 'length')
    // A stride of 0 repeats an element, so the length may exceed the bytes. The layout check covers strides.
    if (dtype !== undefined && (strides ?? null) === null && length * dtypeInfo(dtype).bytes > byteLength) {
      const most = Math.floor(byteLength / dtypeInfo(dtype).bytes)
      throw outOfRange(api, `${name}.length`, `at most ${most}, as ${dtype} in ${byteLength} bytes`, length)
    }
  }
  if (stream !== undefined && stream !== null) {
    checkAddress(stream, api, name, 'stream')
    if (stream === 0n)
      throw outOfRange(api, `${name}.stream`, 'a CUstream, 1n or 2n for a default stream, or null', stream)
  }
  if (access !== undefined && access !== 'granted')
    throw wrongType(api, `${name}.access`, "'granted' or left out", access)
  return answer
}
