import { writeElement } from '@shoal/cuda-base'
import { NativeMemory } from '@shoal/ffi'
import { DisposedError, type DType, describeValue, dtypeInfo, type MemoryLike, toMemoryRange } from '@shoal/types'
import type { Context } from './context.js'
import { DeviceBuffer } from './memory/deviceBuffer.js'
import type { KernelParameter, KernelSignature } from './signature.js'

// The common types have a way of their own, because every launch goes through it.
const kindOf = { pointer: 0, f32: 1, i32: 2, u32: 3, f64: 4, i64: 5, u64: 6, other: 7 } as const
const common: Partial<Record<KernelParameter, number>> = {
  ptr: kindOf.pointer,
  f32: kindOf.f32,
  i32: kindOf.i32,
  u32: kindOf.u32,
  f64: kindOf.f64,
  i64: kindOf.i64,
  u64: kindOf.u64,
}

/** Room for the widest scalar, aligned for it. */
const bytesPerArgument = 16

/** The arguments of a kernel where cuLaunchKernel reads them: an array of pointers, then the values they point to. */
export class ArgumentBlock {
  /** Address of the pointer array. */
  readonly pointers: bigint
  readonly length: number
  readonly #signature: KernelSignature
  readonly #context: Context
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
    const valuesOffset = Math.ceil((count * 8) / bytesPerArgument) * bytesPerArgument
    const memory = NativeMemory.allocate(valuesOffset + Math.max(count, 1) * bytesPerArgument)
    for (let index = 0; index < count; index += 1) {
      memory.u64[index] = memory.address + BigInt(valuesOffset + index * bytesPerArgument)
    }
    const { buffer } = memory
    this.length = count
    this.pointers = memory.address
    this.memory = memory
    this.#signature = signature
    this.#context = context
    this.#kinds = Uint8Array.from(signature, (parameter) => common[parameter] ?? kindOf.other)
    this.#f32 = new Float32Array(buffer, valuesOffset)
    this.#f64 = new Float64Array(buffer, valuesOffset)
    this.#i32 = new Int32Array(buffer, valuesOffset)
    this.#u32 = new Uint32Array(buffer, valuesOffset)
    this.#i64 = new BigInt64Array(buffer, valuesOffset)
    this.#u64 = new BigUint64Array(buffer, valuesOffset)
    this.#view = new DataView(buffer, valuesOffset)
  }

  /** Checks and writes one argument. @throws TypeError, RangeError, DisposedError */
  write(index: number, value: unknown): void {
    switch (this.#kinds[index]) {
      case kindOf.pointer:
        this.#u64[index * 2] = this.#address(index, value)
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
    }
    // The slow way knows every type and says what is wrong.
    writeElement(this.#view, index * bytesPerArgument, this.#signature[index] as DType, value, `argument ${index}`)
  }

  /** Makes sure that memory written before is still there. @throws DisposedError, TypeError */
  recheck(index: number, value: unknown): void {
    if (value instanceof DeviceBuffer) this.#requireUsable(index, value)
    else this.write(index, value)
  }

  #requireUsable(index: number, buffer: DeviceBuffer): void {
    const allocation = buffer._allocation
    if (buffer._disposed || allocation.freed) throw new DisposedError(`DeviceBuffer (argument ${index})`)
    if (allocation.context === this.#context) return
    allocation.context._requireAlive()
    this.#requireReachable(index, allocation.context.device.ordinal)
  }

  #address(index: number, value: unknown): bigint {
    if (value instanceof DeviceBuffer) {
      this.#requireUsable(index, value)
      return value._address
    }
    if (value === null) return 0n
    if (typeof value === 'bigint') {
      if (value < 0n || value > 0xffff_ffff_ffff_ffffn) {
        throw new RangeError(`argument ${index} (ptr) must fit 64 bits, not ${value}`)
      }
      return value
    }
    if (typeof value !== 'object') {
      throw new TypeError(
        `argument ${index} (ptr) must be memory, a bigint address or null, not ${describeValue(value)}`,
      )
    }
    const range = toMemoryRange(value as MemoryLike)
    if (range.deviceOrdinal >= 0) this.#requireReachable(index, range.deviceOrdinal)
    return range.address
  }

  #requireReachable(index: number, device: number): void {
    const own = this.#context.device.ordinal
    if (device === own || this.#context._peers.has(device)) return
    throw new TypeError(
      `argument ${index} (ptr) is memory of device ${device}, the kernel runs on device ${own}; ` +
        'enablePeerAccess() lets it use that memory where the devices can',
    )
  }
}

/** Bytes of a parameter as the image declares it. */
export function parameterBytes(parameter: KernelParameter): number {
  return parameter === 'ptr' ? 8 : dtypeInfo(parameter).bytes
}
