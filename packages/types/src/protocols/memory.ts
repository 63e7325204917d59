import { describeValue } from '../describeValue.js'
import { type DType, dtypeInfo, isDType } from '../dtypes/dtype.js'
import {
  checkAddress,
  checkContext,
  checkCount,
  checkOrdinal,
  checkSameProcess,
  checkVersion,
  isPlain,
} from './checks.js'

/** Key of the memory protocol: `Symbol.for('cuda.memory')`, so that offering memory needs no import of Shoal. */
export const memoryProtocol: unique symbol = Symbol.for('cuda.memory')

/** What an object answers at `Symbol.for('cuda.memory')`: memory that CUDA functions can reach by address. */
export interface MemoryRange {
  readonly version: 0
  /** First byte: a `CUdeviceptr`, or a host address when `device` is -1. */
  readonly address: bigint
  readonly byteLength: number
  /** Ordinal of the device that holds it; -1 for host memory. */
  readonly deviceOrdinal: number
  /** Its `CUcontext`; 0n when it belongs to none. */
  readonly context: bigint
  /** Type of its elements, where it has one. */
  readonly dtype?: DType
  /** Number of elements, where it has a dtype. */
  readonly length?: number
  /** True when writing to it is an error. */
  readonly readOnly?: boolean
}

/**
 * An object that is, or has, memory CUDA can reach. The property is a getter that throws `DisposedError` once the
 * memory is gone.
 */
export interface MemoryLike {
  readonly [memoryProtocol]: MemoryRange
}

/** How another process opens the memory. */
export interface MemoryIpc {
  /** The 64 bytes of a `CUipcMemHandle`. */
  readonly handle: Uint8Array
  /** Where the memory starts within what the handle opens, in bytes. */
  readonly offset: number
}

/** Memory as plain data, which `postMessage` carries to another thread, or an `advanced` IPC channel to a process. */
export interface MemoryDescriptor extends MemoryRange {
  readonly kind: 'cuda.memory'
  /** Id of the process in which the address has a meaning. */
  readonly process: number
  /** Present when other processes may open it. */
  readonly ipc?: MemoryIpc
}

/** Whether a value offers the memory protocol. Does not run its getter. */
export function isMemoryLike(value: unknown): value is MemoryLike {
  return typeof value === 'object' && value !== null && memoryProtocol in value
}

/**
 * The range behind anything that counts as memory CUDA can reach: an object with the memory protocol, or a descriptor
 * from another thread of this process.
 *
 * @throws TypeError when it is neither, or the protocol's answer is malformed
 * @throws RangeError when its numbers contradict each other
 * @throws DisposedError when the memory was disposed
 */
export function toMemoryRange(memory: MemoryLike | MemoryDescriptor): MemoryRange {
  if (isMemoryLike(memory)) return checkedRange(memory[memoryProtocol])
  if (isPlain(memory, 'cuda.memory')) {
    checkSameProcess(memory, 'memory', 'Open its IPC handle there instead of using its address.')
    return checkedRange(memory)
  }
  const wayOut = ArrayBuffer.isView(memory)
    ? ' Copy host arrays to the device first; copies and transfers take pinned memory as well.'
    : ''
  throw new TypeError(
    `expected memory: an object with [Symbol.for('cuda.memory')]; got ${describeValue(memory)}.${wayOut}`,
  )
}

/**
 * Memory as plain data for `postMessage`. It does not keep the memory alive: the sender must.
 *
 * @param ipc how another process opens it; without it the descriptor serves threads of this process only
 * @throws TypeError when `memory` is not memory, or `ipc.handle` is not 64 bytes long
 */
export function describeMemory(memory: MemoryLike | MemoryDescriptor, ipc?: MemoryIpc): MemoryDescriptor {
  const { address, byteLength, deviceOrdinal, context, dtype, length, readOnly } = toMemoryRange(memory)
  if (ipc !== undefined) {
    if (!(ipc.handle instanceof Uint8Array) || ipc.handle.length !== 64) {
      throw new TypeError(`an IPC handle is a Uint8Array of 64 bytes, got ${describeValue(ipc.handle)}`)
    }
    checkCount(ipc.offset, 'IPC offset')
  }
  return {
    kind: 'cuda.memory',
    version: 0,
    process: process.pid,
    address,
    byteLength,
    deviceOrdinal,
    context,
    ...(dtype === undefined ? {} : { dtype }),
    ...(length === undefined ? {} : { length }),
    ...(readOnly === undefined ? {} : { readOnly }),
    ...(ipc === undefined ? {} : { ipc: { handle: ipc.handle.slice(), offset: ipc.offset } }),
  }
}

function checkedRange(answer: MemoryRange): MemoryRange {
  checkVersion(answer, 'cuda.memory')
  const { address, byteLength, deviceOrdinal, context, dtype, length } = answer
  checkAddress(address, 'cuda.memory address')
  checkCount(byteLength, 'cuda.memory byteLength')
  checkOrdinal(deviceOrdinal, 'cuda.memory device')
  checkContext(context, 'cuda.memory context')
  if (dtype !== undefined && !isDType(dtype)) {
    throw new TypeError(`cuda.memory dtype must be the name of a dtype, got ${describeValue(dtype)}`)
  }
  if (length !== undefined) {
    checkCount(length, 'cuda.memory length')
    if (dtype !== undefined && length * dtypeInfo(dtype).bytes > byteLength) {
      throw new RangeError(`cuda.memory of ${byteLength} bytes cannot hold ${length} elements of ${dtype}`)
    }
  }
  return answer
}
