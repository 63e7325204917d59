import { constants } from 'node:buffer'
import { DisposedError } from '@shoal/types'
import { addon } from '../addon/load.js'

/**
 * Host memory outside of the JavaScript heap: it never moves, its address is known, and native threads may use it after
 * the JavaScript thread has ended. Zeroed, aligned to 64 bytes. Freed by `dispose()` at once or, failing that, by the
 * collector, and in either case not before recorded calls that use it have run.
 */
export class NativeMemory {
  readonly #buffer: ArrayBuffer
  readonly #address: bigint
  readonly #byteLength: number
  #disposed = false
  #bytes: Uint8Array | undefined
  #u32: Uint32Array | undefined
  #i32: Int32Array | undefined
  #u64: BigUint64Array | undefined
  #f32: Float32Array | undefined
  #f64: Float64Array | undefined

  private constructor(buffer: ArrayBuffer, address: bigint) {
    this.#buffer = buffer
    this.#address = address
    this.#byteLength = buffer.byteLength
  }

  /**
   * @param byteLength bytes.
   * @throws RangeError for what is no size, for more than an ArrayBuffer of this engine can have, and when there is no
   * memory.
   */
  static allocate(byteLength: number): NativeMemory {
    if (!Number.isSafeInteger(byteLength) || byteLength < 0 || byteLength > constants.MAX_LENGTH) {
      throw new RangeError(
        `NativeMemory.allocate: byteLength must be an integer from 0 to ${constants.MAX_LENGTH}, what an ArrayBuffer of this engine can have, got ${String(byteLength)}`,
      )
    }
    const { buffer, address } = addon().allocate(byteLength)
    return new NativeMemory(buffer, address)
  }

  get address(): bigint {
    if (this.#disposed) throw new DisposedError({ object: 'NativeMemory' })
    return this.#address
  }

  /** Bytes; 0 after dispose(). */
  get byteLength(): number {
    return this.#disposed ? 0 : this.#byteLength
  }

  get disposed(): boolean {
    return this.#disposed
  }

  get buffer(): ArrayBuffer {
    if (this.#disposed) throw new DisposedError({ object: 'NativeMemory' })
    return this.#buffer
  }

  get bytes(): Uint8Array {
    return (this.#bytes ??= new Uint8Array(this.buffer))
  }
  get u32(): Uint32Array {
    return (this.#u32 ??= new Uint32Array(this.buffer, 0, this.byteLength >> 2))
  }
  get i32(): Int32Array {
    return (this.#i32 ??= new Int32Array(this.buffer, 0, this.byteLength >> 2))
  }
  get u64(): BigUint64Array {
    return (this.#u64 ??= new BigUint64Array(this.buffer, 0, this.byteLength >> 3))
  }
  get f32(): Float32Array {
    return (this.#f32 ??= new Float32Array(this.buffer, 0, this.byteLength >> 2))
  }
  get f64(): Float64Array {
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
}
