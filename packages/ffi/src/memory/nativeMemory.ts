import { constants } from 'node:buffer'
import {
  DisposedError,
  inspectKey,
  inspectLine,
  loadedFrom,
  type OwnedArrayOf,
  PublicObject,
  requireInteger,
  requireMade,
} from '@shoal/types'
import { addon } from '../addon/load.js'

/**
 * Methods that move an `ArrayBuffer`'s memory. After its first thread ends, nothing reports the end of a moved buffer.
 */
const moves = ['transfer', 'transferToFixedLength'].filter((name) => name in ArrayBuffer.prototype)

/** Makes these methods throw, as `postMessage` does for this buffer. */
function keepInPlace(buffer: ArrayBuffer): void {
  for (const name of moves) {
    const value = (): never => {
      throw new TypeError(`NativeMemory.buffer.${name}: the memory stays at its address; slice() gives a copy to move`)
    }
    Object.defineProperty(buffer, name, { value })
  }
}

/**
 * Host memory outside the JavaScript heap, with a fixed address.
 *
 * Native threads may use it after the JavaScript thread has ended. It is zeroed and aligned to 64 bytes. `dispose()`
 * frees it immediately, else the collector frees it; both wait for recorded calls that use it.
 *
 * @example
 * using out = NativeMemory.allocate(8)
 * cuMemAlloc(out.address, 1024)
 * const devicePointer = out.u64[0]
 */
export class NativeMemory extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  readonly #buffer: ArrayBuffer
  readonly #address: bigint
  readonly #byteLength: number
  #disposed = false
  #bytes: OwnedArrayOf<'u8'> | undefined
  #u32: OwnedArrayOf<'u32'> | undefined
  #i32: OwnedArrayOf<'i32'> | undefined
  #u64: OwnedArrayOf<'u64'> | undefined
  #f32: OwnedArrayOf<'f32'> | undefined
  #f64: OwnedArrayOf<'f64'> | undefined

  private constructor(buffer: ArrayBuffer, address: bigint) {
    requireMade(address, 'NativeMemory', 'NativeMemory.allocate')
    super()
    keepInPlace(buffer)
    this.#buffer = buffer
    this.#address = address
    this.#byteLength = buffer.byteLength
  }

  /**
   * Allocates zeroed memory, which the collector frees with its object.
   *
   * @param byteLength bytes, at most the limit of an ArrayBuffer in this engine.
   * @throws TypeError; RangeError also if the system is out of memory.
   */
  static allocate(byteLength: number): NativeMemory {
    requireInteger(byteLength, 'NativeMemory.allocate', 'byteLength', 0, constants.MAX_LENGTH)
    const { buffer, address } = addon().allocate(byteLength)
    return new NativeMemory(buffer, address)
  }

  /** Address of the first byte. @throws DisposedError */
  get address(): bigint {
    if (this.#disposed) throw new DisposedError({ object: 'NativeMemory' })
    return this.#address
  }

  /** Size in bytes; 0 after dispose(). */
  get byteLength(): number {
    return this.#disposed ? 0 : this.#byteLength
  }

  /** Whether dispose() was called. */
  get disposed(): boolean {
    return this.#disposed
  }

  /**
   * The memory itself, which cannot be moved to another buffer. The typed arrays below are views of it.
   *
   * @throws DisposedError
   */
  get buffer(): ArrayBuffer {
    if (this.#disposed) throw new DisposedError({ object: 'NativeMemory' })
    return this.#buffer
  }

  /** All bytes. */
  get bytes(): OwnedArrayOf<'u8'> {
    return (this.#bytes ??= new Uint8Array(this.buffer))
  }
  /** All whole unsigned 32-bit words. */
  get u32(): OwnedArrayOf<'u32'> {
    return (this.#u32 ??= new Uint32Array(this.buffer, 0, this.byteLength >> 2))
  }
  /** All whole signed 32-bit words. */
  get i32(): OwnedArrayOf<'i32'> {
    return (this.#i32 ??= new Int32Array(this.buffer, 0, this.byteLength >> 2))
  }
  /** All whole unsigned 64-bit words. */
  get u64(): OwnedArrayOf<'u64'> {
    return (this.#u64 ??= new BigUint64Array(this.buffer, 0, this.byteLength >> 3))
  }
  /** Elements of type `float`. */
  get f32(): OwnedArrayOf<'f32'> {
    return (this.#f32 ??= new Float32Array(this.buffer, 0, this.byteLength >> 2))
  }
  /** Elements of type `double`. */
  get f64(): OwnedArrayOf<'f64'> {
    return (this.#f64 ??= new Float64Array(this.buffer, 0, this.byteLength >> 3))
  }

  /** Detaches the buffer and frees the memory after native code has finished with it. Idempotent. */
  dispose(): void {
    if (this.#disposed) return
    this.#disposed = true
    // If the program moved the memory to another buffer (`transfer()`), that buffer owns the memory now.
    const isWhole = this.#buffer.byteLength === this.#byteLength
    addon().detach(this.#buffer)
    if (isWhole) addon().release(this.#address)
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  override [inspectKey](): string {
    return inspectLine('NativeMemory', {
      address: this.#address,
      byteLength: this.byteLength,
      disposed: this.#disposed,
    })
  }
}
