import { isUint8Array } from 'node:util/types'
import { NativeMemory } from '@shoal/ffi'
import {
  DisposedError,
  type DType,
  type MemoryLike,
  type MemoryRange,
  outOfRange,
  requireAddress,
  wrongType,
} from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { byteLengthOf } from '../../core/ranges/arrayBytes.js'
import { toSpan } from '../../core/ranges/span.js'
import { orderBehind, type Producer } from '../../core/stream/orderBehind.js'
import { halvesOf, type U64Halves, u64Of } from '../../core/u64Halves.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import { writeElement } from '../../memory/buffers/elements.js'
import { isKnownToReach, requireReach, requireReachable } from '../../memory/buffers/reach.js'
import { isObjectType, type KernelSignature, tensorMapLayout, writeObject } from './signature.js'

// Common types have separate code paths, because every launch uses them.
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

/**
 * Bytes for the widest scalar, with its alignment. Structs and tensor maps take several of these, after all scalars.
 */
const bytesPerArgument = 16

/** A kernel's arguments in the layout of cuLaunchKernel: an array of pointers, then the values. */
export class ArgumentBlock {
  /** Address of the pointer array. */
  readonly pointers: U64Halves
  readonly length: number
  /** The function that errors name. */
  api: string
  readonly #signature: KernelSignature
  readonly #context: Context
  /** Offset of each value in the memory. */
  readonly #offsets: readonly number[]
  /** Size of each struct in bytes; 0 for other types. */
  readonly #structBytes: readonly number[]
  /** Name of each argument in errors. */
  readonly #names: readonly string[]
  /** Keeps the memory alive, because the collector frees it with this object. */
  readonly memory: NativeMemory
  readonly #bytes: Uint8Array
  readonly #kinds: Uint8Array
  readonly #f32: Float32Array
  readonly #f64: Float64Array
  readonly #i32: Int32Array
  readonly #u32: Uint32Array
  readonly #u64: BigUint64Array
  readonly #view: DataView
  /** Pending work on memory arguments that were written since the last reset; undefined for most launches. */
  pending: Producer[] | undefined
  /** Buffers for encoding structs, by argument index. */
  readonly #structs: (Room | undefined)[] = []

  constructor(context: Context, signature: KernelSignature, api: string) {
    const count = signature.length
    const valuesOffset = roundUp(count * 8, bytesPerArgument)
    let end = valuesOffset + Math.max(count, 1) * bytesPerArgument
    const offsets = signature.map((parameter, index) => {
      const wide = parameter === 'tensorMap' ? tensorMapLayout : parameter
      if (typeof wide !== 'object') return valuesOffset + index * bytesPerArgument
      const offset = roundUp(end, Math.max(wide.alignment, bytesPerArgument))
      end = offset + wide.bytes
      return offset
    })
    const memory = NativeMemory.allocate(roundUp(end, bytesPerArgument))
    for (const [index, offset] of offsets.entries()) memory.u64[index] = memory.address + BigInt(offset)
    const { buffer } = memory
    this.length = count
    this.api = api
    this.pointers = halvesOf(memory.address)
    this.memory = memory
    this.#bytes = memory.bytes
    this.#signature = signature
    this.#context = context
    this.#offsets = offsets
    this.#structBytes = signature.map((type) => (typeof type === 'object' ? type.bytes : 0))
    this.#names = offsets.map((_, index) => `args[${index}]`)
    this.#kinds = Uint8Array.from(signature, (type) =>
      typeof type === 'string' ? (common[type] ?? kindOf.other) : kindOf.struct,
    )
    this.#f32 = new Float32Array(buffer, valuesOffset)
    this.#f64 = new Float64Array(buffer, valuesOffset)
    this.#i32 = new Int32Array(buffer, valuesOffset)
    this.#u32 = new Uint32Array(buffer, valuesOffset)
    this.#u64 = new BigUint64Array(buffer, valuesOffset)
    this.#view = new DataView(buffer)
  }

  /**
   * Checks and writes arguments, starting with argument `first`. A single function instead of one per argument, so that
   * V8 inlines the rest of a launch into it.
   * @throws TypeError, RangeError, DisposedError
   */
  write(values: readonly unknown[], first = 0): void {
    for (let at = 0; at < values.length; at += 1) {
      const index = first + at
      const value = values[at]
      const kind = this.#kinds[index]
      if (kind === kindOf.pointer) {
        this.#u64[index * 2] = this.#address(index, value)
        continue
      }
      // Bytes of a struct that the program encoded earlier.
      if (kind === kindOf.struct && isUint8Array(value) && byteLengthOf(value) === this.#structBytes[index]) {
        this.#bytes.set(value, this.#offsets[index])
        continue
      }
      if (typeof value === 'number') {
        switch (kind) {
          case kindOf.f32:
            this.#f32[index * 4] = value
            continue
          case kindOf.i32:
            if ((value | 0) !== value) break
            this.#i32[index * 4] = value
            continue
          case kindOf.u32:
            if (value >>> 0 !== value) break
            this.#u32[index * 4] = value
            continue
          case kindOf.f64:
            this.#f64[index * 2] = value
            continue
          case kindOf.i64:
            if ((value | 0) !== value) break
            this.#i32[index * 4] = value
            this.#i32[index * 4 + 1] = value >> 31
            continue
          case kindOf.u64:
            if (value >>> 0 !== value) break
            this.#u32[index * 4] = value
            this.#u32[index * 4 + 1] = 0
            continue
        }
      }
      this.#writeOther(index, value)
    }
  }

  /** Checks that memory written earlier still exists. @throws DisposedError, TypeError */
  recheck(index: number, value: unknown): void {
    if (!(value instanceof DeviceBuffer)) this.write([value], index)
    else if (value._addressIn(this.#context) === undefined) this.#requireUsable(index, value)
  }

  /** The slow path, which knows every type and reports errors. */
  #writeOther(index: number, value: unknown): void {
    const [type, offset, name] = [this.#signature[index], this.#offsets[index] as number, this.#name(index)]
    if (isObjectType(type)) {
      writeObject(type, value, this.#view, offset, this.#context, this.api, name)
      return
    }
    if (typeof type !== 'object') {
      writeElement(this.#view, offset, type as DType, value, this.api, name)
      return
    }
    if (isUint8Array(value)) {
      throw outOfRange(this.api, name, `the ${type.bytes} bytes of a ${type.name}`, byteLengthOf(value))
    }
    // Encode into another buffer and then copy, so that a failure keeps the previous value. A getter of the value may
    // call this function again, which then uses a different buffer.
    const room = this.#structs[index] ?? roomFor(type.bytes)
    this.#structs[index] = undefined
    try {
      type.write(room.view, value as never)
      this.#bytes.set(room.bytes, offset)
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError) {
        error.message = `${this.api}: ${name}: ${error.message}`
      }
      throw error
    } finally {
      this.#structs[index] = room
    }
  }

  #requireUsable(index: number, buffer: DeviceBuffer): void {
    const allocation = buffer._allocation
    if (buffer._disposed || allocation.freed) {
      throw new DisposedError({ object: `the DeviceBuffer ${this.#name(index)}`, operation: this.api })
    }
    if (allocation.source !== undefined) {
      buffer._use()
      if (buffer._pending !== undefined) this.#await(buffer._pending)
      this.#requireReachable(index, buffer._surroundings(allocation.source))
      return
    }
    const { context } = allocation
    if (context === this.#context) return
    context._requireAlive()
    if (isKnownToReach(this.#context, allocation)) return
    const deviceOrdinal = context.device.ordinal
    if (deviceOrdinal === this.#context.device.ordinal) return
    const range = { address: buffer._address, deviceOrdinal }
    requireReach(this.#context, range, allocation, this.api, this.#name(index))
  }

  #address(index: number, value: unknown): bigint {
    if (value instanceof DeviceBuffer && value._identity !== undefined) {
      const address = value._addressIn(this.#context)
      if (address !== undefined) return address
      this.#requireUsable(index, value)
      return value._address
    }
    if (value === null) return 0n
    if (typeof value === 'bigint') return requireAddress(value, this.api, this.#name(index))
    if (typeof value !== 'object') {
      throw wrongType(this.api, this.#name(index), 'memory, a bigint address or null', value)
    }
    const range = toSpan(value as MemoryLike, this.api, this.#name(index))
    this.#requireReachable(index, range)
    if (range.stream !== undefined && range.stream !== null) this.#await(range)
    return range.address
  }

  #await(producer: Producer): void {
    this.pending ??= []
    this.pending.push(producer)
  }

  /** Makes a stream wait, once, for pending work on memory arguments. @throws StatusError */
  orderBehind(stream: U64Halves): void {
    const producers = this.pending ?? []
    this.pending = undefined
    for (const producer of producers) orderBehind(u64Of(stream), this.#context.handle, producer)
  }

  #name(index: number): string {
    // The value is a separate parameter of PreparedLaunch.set.
    return this.api === 'PreparedLaunch.set' ? 'value' : (this.#names[index] as string)
  }

  #requireReachable(index: number, range: MemoryRange): void {
    requireReachable(this.#context, range, this.api, this.#name(index))
  }
}

interface Room {
  readonly bytes: Uint8Array
  readonly view: DataView
}

function roomFor(byteLength: number): Room {
  const bytes = new Uint8Array(byteLength)
  return { bytes, view: new DataView(bytes.buffer) }
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple
}
