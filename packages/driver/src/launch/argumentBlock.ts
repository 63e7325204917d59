import { type Context, DeviceBuffer, writeElement } from '@shoal/cuda-base'
import { NativeMemory } from '@shoal/ffi'
import {
  DisposedError,
  type DType,
  type MemoryLike,
  type MemoryRange,
  requireAddress,
  type StructType,
  toMemoryRange,
  wrongType,
} from '@shoal/types'
import type { KernelSignature } from './signature.js'

// The common types have a way of their own, because every launch goes through it.
const kindOf = { pointer: 0, f32: 1, i32: 2, u32: 3, f64: 4, i64: 5, u64: 6, struct: 7, other: 8 } as const
const common: { readonly [dtype: string]: number } = {
  ptr: kindOf.pointer,
  f32: kindOf.f32,
  i32: kindOf.i32,
  u32: kindOf.u32,
  f64: kindOf.f64,
  i64: kindOf.i64,
  u64: kindOf.u64,
}

/** Room for the widest scalar, aligned for it. A struct takes as many of these as it needs, after all scalars. */
const bytesPerArgument = 16

/** The arguments of a kernel where cuLaunchKernel reads them: an array of pointers, then the values they point to. */
export class ArgumentBlock {
  /** Address of the pointer array. */
  readonly pointers: bigint
  readonly length: number
  readonly #signature: KernelSignature
  readonly #context: Context
  /** Where each value lies in the memory. */
  readonly #offsets: readonly number[]
  /** Held because the collector frees the memory with it. */
  readonly memory: NativeMemory
  readonly #kinds: Uint8Array
  readonly #f32: Float32Array
  readonly #f64: Float64Array
  readonly #i32: Int32Array
  readonly #u32: Uint32Array
  readonly #i64: BigInt64Array
  readonly #u64: BigUint64Array
  readonly #view: DataView

  constructor(context: Context, signature: KernelSignature) {
    const count = signature.length
    const valuesOffset = roundUp(count * 8, bytesPerArgument)
    let end = valuesOffset + Math.max(count, 1) * bytesPerArgument
    const offsets = signature.map((parameter, index) => {
      if (typeof parameter !== 'object') return valuesOffset + index * bytesPerArgument
      const offset = roundUp(end, Math.max(parameter.alignment, bytesPerArgument))
      end = offset + parameter.bytes
      return offset
    })
    const memory = NativeMemory.allocate(roundUp(end, bytesPerArgument))
    for (const [index, offset] of offsets.entries()) memory.u64[index] = memory.address + BigInt(offset)
    const { buffer } = memory
    this.length = count
    this.pointers = memory.address
    this.memory = memory
    this.#signature = signature
    this.#context = context
    this.#offsets = offsets
    this.#kinds = Uint8Array.from(
      signature,
      (type) => (typeof type === 'string' ? common[type] : kindOf.struct) ?? kindOf.other,
    )
    this.#f32 = new Float32Array(buffer, valuesOffset)
    this.#f64 = new Float64Array(buffer, valuesOffset)
    this.#i32 = new Int32Array(buffer, valuesOffset)
    this.#u32 = new Uint32Array(buffer, valuesOffset)
    this.#i64 = new BigInt64Array(buffer, valuesOffset)
    this.#u64 = new BigUint64Array(buffer, valuesOffset)
    this.#view = new DataView(buffer)
  }

  /** Checks and writes one argument. @throws TypeError, RangeError, DisposedError */
  write(index: number, value: unknown, api: string): void {
    switch (this.#kinds[index]) {
      case kindOf.pointer:
        this.#u64[index * 2] = this.#address(index, value, api)
        return
      case kindOf.f32:
        if (typeof value !== 'number') break
        this.#f32[index * 4] = value
        return
      case kindOf.i32:
        if (typeof value !== 'number' || (value | 0) !== value) break
        this.#i32[index * 4] = value
        return
      case kindOf.u32:
        if (typeof value !== 'number' || value >>> 0 !== value) break
        this.#u32[index * 4] = value
        return
      case kindOf.f64:
        if (typeof value !== 'number') break
        this.#f64[index * 2] = value
        return
      case kindOf.i64:
        if (typeof value !== 'number' || (value | 0) !== value) break
        this.#i32[index * 4] = value
        this.#i32[index * 4 + 1] = value >> 31
        return
      case kindOf.u64:
        if (typeof value !== 'number' || value >>> 0 !== value) break
        this.#u32[index * 4] = value
        this.#u32[index * 4 + 1] = 0
        return
      case kindOf.struct:
        this.#writeStruct(index, value, api)
        return
    }
    // The slow way knows every type and says what is wrong.
    const offset = this.#offsets[index] as number
    writeElement(this.#view, offset, this.#signature[index] as DType, value, api, `args[${index}]`)
  }

  /** Encoded first and then copied, so that what is refused halfway leaves the value that was there. */
  #writeStruct(index: number, value: unknown, api: string): void {
    const struct = this.#signature[index] as StructType
    let bytes: Uint8Array
    try {
      bytes = struct.encode(value as never)
    } catch (error) {
      throw withArgument(error, api, index)
    }
    this.memory.bytes.set(bytes, this.#offsets[index] as number)
  }

  /** Makes sure that memory written before is still there. @throws DisposedError, TypeError */
  recheck(index: number, value: unknown, api: string): void {
    if (value instanceof DeviceBuffer) this.#requireUsable(index, value, api)
    else this.write(index, value, api)
  }

  #requireUsable(index: number, buffer: DeviceBuffer, api: string): void {
    const allocation = buffer._allocation
    if (buffer._disposed || allocation.freed) {
      throw new DisposedError({ object: `the DeviceBuffer args[${index}]`, operation: api })
    }
    if (allocation.context === this.#context) return
    allocation.context._requireAlive()
    this.#requireReachable(index, allocation.context.device.ordinal, api)
  }

  #address(index: number, value: unknown, api: string): bigint {
    if (value instanceof DeviceBuffer) {
      this.#requireUsable(index, value, api)
      return value._address
    }
    if (value === null) return 0n
    if (typeof value === 'bigint') return requireAddress(value, api, `args[${index}]`)
    if (typeof value !== 'object') {
      throw wrongType(api, `args[${index}]`, 'memory, a bigint address or null', value)
    }
    const range = rangeOf(value as MemoryLike, api, index)
    if (range.deviceOrdinal >= 0) this.#requireReachable(index, range.deviceOrdinal, api)
    return range.address
  }

  #requireReachable(index: number, deviceOrdinal: number, api: string): void {
    const own = this.#context.device.ordinal
    if (deviceOrdinal === own || this.#context._peers.has(deviceOrdinal)) return
    throw new TypeError(
      `${api}: args[${index}] must be memory that device ${own}, where the kernel runs, can use, not memory of device ` +
        `${deviceOrdinal}; enablePeerAccess() lets it use that where the devices can`,
    )
  }
}

function rangeOf(memory: MemoryLike, api: string, index: number): MemoryRange {
  try {
    return toMemoryRange(memory)
  } catch (error) {
    throw withArgument(error, api, index)
  }
}

/** Puts the function and the argument in front of what a general check says. */
function withArgument(error: unknown, api: string, index: number): unknown {
  if (error instanceof TypeError || error instanceof RangeError)
    error.message = `${api}: args[${index}]: ${error.message}`
  return error
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple
}
