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
 * Other ends of an `ArrayBuffer`'s memory: nothing tells when the last of them is gone once its first thread has ended.
 */
const moves = ['transfer', 'transferToFixedLength'].filter((name) => name in ArrayBuffer.prototype)

/** Moving the memory away is refused, as Node refuses to post the buffer. */
function keepInPlace(buffer: ArrayBuffer): void {
  for (const name of moves) {
    const value = (): never => {
      throw new TypeError(`NativeMemory.buffer.${name}: the memory stays at its address; slice() gives a copy to move`)
    }
    Object.defineProperty(buffer, name, { value })
  }
}

/**
 * Host memory outside of the JavaScript heap: it never moves, its address is known, and native threads may use it after
 * the JavaScript thread has ended. Zeroed, aligned to 64 bytes. Freed by `dispose()` at once or, failing that, by the
 * collector, and in either case not before recorded calls that use it have run.
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
   * Memory with all bits zero, which the collector frees with its object.
   * @param byteLength bytes, at most as many as an ArrayBuffer of this engine can have.
   * @throws TypeError; RangeError also when the system has no more memory.
   */
  static allocate(byteLength: number): NativeMemory {
    requireInteger(byteLength, 'NativeMemory.allocate', 'byteLength', 0, constants.MAX_LENGTH)
    const { buffer, address } = addon().allocate(byteLength)
    return new NativeMemory(buffer, address)
  }

  /** Of the first byte. @throws DisposedError */
  get address(): bigint {
    if (this.#disposed) throw new DisposedError({ object: 'NativeMemory' })
    return this.#address
  }

  /** Bytes; 0 after dispose(). */
  get byteLength(): number {
    return this.#disposed ? 0 : this.#byteLength
  }

  /** Whether dispose() was called. */
  get disposed(): boolean {
    return this.#disposed
  }

  /**
   * The memory itself; the typed arrays below are views of it. It cannot be moved to another buffer. @throws
   * DisposedError
   */
  get buffer(): ArrayBuffer {
    if (this.#disposed) throw new DisposedError({ object: 'NativeMemory' })
    return this.#buffer
  }

  /** All of it, byte by byte. */
  get bytes(): OwnedArrayOf<'u8'> {
    return (this.#bytes ??= new Uint8Array(this.buffer))
  }
  /** As many whole words of 32 bits as it has; so the other views. */
  get u32(): OwnedArrayOf<'u32'> {
    return (this.#u32 ??= new Uint32Array(this.buffer, 0, this.byteLength >> 2))
  }
  /** The same as signed words. */
  get i32(): OwnedArrayOf<'i32'> {
    return (this.#i32 ??= new Int32Array(this.buffer, 0, this.byteLength >> 2))
  }
  /** Whole words of 64 bits. */
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

  /** Detaches the buffer and frees the memory once nothing native uses it. Idempotent. */
  dispose(): void {
    if (this.#disposed) return
    this.#disposed = true
    // A program may have moved the memory to another buffer (`transfer()`): then it lives as long as that one.
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
