// Memory to pass as pointer arguments.

import type { ParameterSpec } from '../spec/types.js'
import type { Ffi, NativeMemory } from './packages.js'

export interface PointerArgument {
  readonly js: unknown
  /** Returns the address; called after the call. */
  readonly address: () => bigint
}

/** More than any pointer parameter of these libraries needs. */
export const byteLength = 16_384

type ArrayType = new (length: number) => ArrayBufferView

/** Arrays with elements wider than the pointer's target are refused. */
function arrayFor(size: number | undefined, widest: ArrayType): ArrayType {
  if (size === 2) return Uint16Array
  return size === 4 ? Float32Array : widest
}

export class MemoryPool {
  readonly #ffi: Ffi
  readonly #natives: NativeMemory[]
  #next = 0

  constructor(ffi: Ffi) {
    this.#ffi = ffi
    this.#natives = Array.from({ length: 64 }, () => ffi.NativeMemory.allocate(byteLength))
  }

  /** Returns each kind of memory that a pointer argument may be, in rotation, often with the minimum size. */
  any({ pointee }: ParameterSpec): PointerArgument {
    const turn = this.#next++
    // Such small arrays are in the JavaScript heap, where they can move until their address is taken.
    if (pointee !== undefined && turn % 2 === 0) {
      const size = pointee.array && turn % 4 === 0 ? 0 : pointee.size
      return this.#view(turn % 6 === 0 ? new DataView(new ArrayBuffer(size)) : new Uint8Array(size))
    }
    switch ((turn >> 1) % 8) {
      case 0:
        return this.#view(new (arrayFor(pointee?.size, Float64Array))(byteLength / 2))
      case 1:
        return this.#view(new DataView(new ArrayBuffer(byteLength * 2), 24, byteLength))
      case 2: {
        const buffer = new ArrayBuffer(byteLength)
        return { js: buffer, address: () => this.#ffi.addressOf(buffer) }
      }
      case 3: {
        const buffer = new SharedArrayBuffer(byteLength)
        return { js: buffer, address: () => this.#ffi.addressOf(new Uint8Array(buffer)) }
      }
      case 4:
        return this.native()
      case 5:
        return this.#view(new Uint8Array(byteLength * 2).subarray(13))
      case 6:
        return this.#view(new (arrayFor(pointee?.size, BigUint64Array))(byteLength / 2))
      default:
        return this.#view(Buffer.alloc(byteLength))
    }
  }

  native(): PointerArgument {
    const memory = this.#natives[this.#next++ % this.#natives.length] as NativeMemory
    return { js: memory, address: () => memory.address }
  }

  /** A structure at some offset, surrounded by other bytes. */
  copy(bytes: Uint8Array): ArrayBufferView {
    const target = new Uint8Array(bytes.length + 48).fill(0xa5)
    target.set(bytes, 16)
    const view = target.subarray(16, 16 + bytes.length)
    return this.#next++ % 2 === 0 ? view : new DataView(view.buffer, view.byteOffset, view.byteLength)
  }

  nativeCopy(bytes: Uint8Array): NativeMemory {
    const memory = this.#ffi.NativeMemory.allocate(bytes.length)
    memory.bytes.set(bytes)
    return memory
  }

  #view(view: ArrayBufferView): PointerArgument {
    return { js: view, address: () => this.#ffi.addressOf(view) }
  }
}
