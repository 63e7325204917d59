import { outOfRange, requireArrayLike, wrongType } from '../arguments/scalars.js'
import type { OwnedArrayOf } from '../dtypes/dtype.js'
import { isView } from '../isView.js'
import type { CompoundWithCodec, FieldCodec } from './fieldCodec.js'

/** Reads and writes structs, arrays and tuples; their codec knows the layout. */
export class Compound<K extends 'struct' | 'array' | 'tuple', V = unknown> implements CompoundWithCodec {
  readonly kind: K
  readonly name: string
  readonly bytes: number
  readonly alignment: number
  readonly #codec: FieldCodec

  constructor(kind: K, name: string, codec: FieldCodec) {
    this.kind = kind
    this.name = name
    this.bytes = codec.bytes
    this.alignment = codec.alignment
    this.#codec = codec
  }

  get codec(): FieldCodec {
    return this.#codec
  }

  write(target: ArrayBufferView | ArrayBufferLike, value: unknown, byteOffset = 0): void {
    const view = viewOf(target, this.name)
    this.#checkRoom(view, byteOffset)
    this.#codec.write(view, byteOffset, value, this.name)
  }

  read(source: ArrayBufferView | ArrayBufferLike, byteOffset = 0): V {
    const view = viewOf(source, this.name)
    this.#checkRoom(view, byteOffset)
    return this.#codec.read(view, byteOffset) as V
  }

  encode(...values: readonly unknown[]): OwnedArrayOf<'u8'> {
    return this.encodeArray(values)
  }

  encodeArray(values: ArrayLike<unknown>): OwnedArrayOf<'u8'> {
    const count = requireArrayLike(values, `${this.name}.encodeArray`, 'values').length
    const bytes = new Uint8Array(this.bytes * count)
    const view = viewOf(bytes, this.name)
    for (let index = 0; index < count; index += 1) {
      this.#codec.write(view, index * this.bytes, values[index], this.name)
    }
    return bytes
  }

  decode(source: ArrayBufferView | ArrayBufferLike): V[] {
    const view = viewOf(source, this.name)
    if (view.byteLength % this.bytes !== 0) {
      const whole = `a multiple of ${this.bytes} bytes long`
      throw new RangeError(`${this.name}.decode: source must be ${whole}, not ${view.byteLength}`)
    }
    return Array.from(
      { length: view.byteLength / this.bytes },
      (_, index) => this.#codec.read(view, index * this.bytes) as V,
    )
  }

  #checkRoom(view: DataView, byteOffset: number): void {
    if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset + this.bytes > view.byteLength) {
      const room = `an integer from 0 to ${view.byteLength - this.bytes} for ${this.bytes} bytes in ${view.byteLength}`
      throw outOfRange(this.name, 'byteOffset', room, byteOffset)
    }
  }
}

function viewOf(memory: ArrayBufferView | ArrayBufferLike, name: string): DataView {
  if (isView(memory)) {
    if (Object.getPrototypeOf(memory) === DataView.prototype) return memory as DataView
    return new DataView(memory.buffer, memory.byteOffset, memory.byteLength)
  }
  // By tag, because a buffer of another realm (node:vm) is not an instance of this realm's class.
  const tag = Object.prototype.toString.call(memory)
  if (tag === '[object ArrayBuffer]' || tag === '[object SharedArrayBuffer]') return new DataView(memory)
  throw wrongType(name, 'memory', 'a view or a buffer', memory)
}

/** Rounds up to the next multiple. */
export function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple
}
