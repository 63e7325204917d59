import { isInstance } from '../anyValue.js'
import { requireOptions } from '../arguments/options.js'
import { outOfRange, requireInteger, wrongType } from '../arguments/scalars.js'
import { type DType, dtypeInfo, isDType } from '../dtypes/dtype.js'
import { checkAddress, checkCount, checkOrdinal, checkSameProcess, checkVersion, isPlain, offers } from './checks.js'

/** Key of the memory protocol: `Symbol.for('cuda.memory')`, so that offering memory needs no import of Shoal. */
export const memoryProtocol: unique symbol = Symbol.for('cuda.memory')

/** What an object answers at `Symbol.for('cuda.memory')`: memory that CUDA functions can reach by address. */
export interface MemoryRange {
  /** Of the protocol. */
  readonly version: 0
  /** First byte: a `CUdeviceptr`, or a host address when `deviceOrdinal` is -1. */
  readonly address: bigint
  /** Its length. */
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
  /** Tells what it describes. */
  readonly kind: 'cuda.memory'
  /** Id of the process in which the address has a meaning. */
  readonly process: number
  /** Present when other processes may open it. */
  readonly ipc?: MemoryIpc
}

/** Whether a value offers the memory protocol. Does not run its getter. */
export function isMemoryLike(value: unknown): value is MemoryLike {
  return offers(value, memoryProtocol)
}

/**
 * The range behind anything that counts as memory CUDA can reach: an object with the memory protocol, or a descriptor
 * from another thread of this process.
 *
 * @param api - the function, and `name` its parameter, that an error names
 * @throws TypeError when it is neither, or the protocol's answer is malformed
 * @throws RangeError when its numbers contradict each other
 * @throws DisposedError when the memory was disposed
 */
export function toMemoryRange(
  memory: MemoryLike | MemoryDescriptor,
  api = 'toMemoryRange',
  name = 'memory',
): MemoryRange {
  if (isMemoryLike(memory)) return checkedRange(memory[memoryProtocol], api, name)
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
 * Memory as plain data for `postMessage`. It does not keep the memory alive: the sender must.
 *
 * @param ipc how another process opens it; without it the descriptor serves threads of this process only
 * @throws TypeError when `memory` is not memory, or `ipc.handle` is not 64 bytes long
 * @example
 * worker.postMessage(describeMemory(buffer))
 */
export function describeMemory(memory: MemoryLike | MemoryDescriptor, ipc?: MemoryIpc): MemoryDescriptor {
  const { address, byteLength, deviceOrdinal, context, dtype, length, readOnly } = toMemoryRange(
    memory,
    'describeMemory',
  )
  if (ipc !== undefined) {
    const { handle, offset } = requireOptions<MemoryIpc>(ipc, 'describeMemory', { handle: true, offset: true }, 'ipc')
    if (!isInstance(handle, Uint8Array) || handle.length !== 64) {
      throw wrongType('describeMemory', 'ipc.handle', 'a Uint8Array of 64 bytes', handle)
    }
    requireInteger(offset, 'describeMemory', 'ipc.offset', 0)
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

function checkedRange(answer: MemoryRange, api: string, name: string): MemoryRange {
  checkVersion(answer, 'cuda.memory', api, name)
  const { address, byteLength, deviceOrdinal, context, dtype, length } = answer
  checkAddress(address, api, name, 'address')
  checkCount(byteLength, api, name, 'byteLength')
  checkOrdinal(deviceOrdinal, api, name)
  checkAddress(context, api, name, 'context')
  if (dtype !== undefined && !isDType(dtype)) throw wrongType(api, `${name}.dtype`, 'the name of a dtype', dtype)
  if (length !== undefined) {
    checkCount(length, api, name, 'length')
    if (dtype !== undefined && length * dtypeInfo(dtype).bytes > byteLength) {
      const most = Math.floor(byteLength / dtypeInfo(dtype).bytes)
      throw outOfRange(api, `${name}.length`, `at most ${most}, as ${dtype} in ${byteLength} bytes`, length)
    }
  }
  return answer
}
