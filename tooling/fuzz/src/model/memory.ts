import type { DeviceBuffer } from '@shoal/driver'
import type { Use } from './clock.js'

/** The types of elements that the model knows, with the arrays that hold them. */
export const arrays = {
  i8: Int8Array,
  u8: Uint8Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  f32: Float32Array,
  f64: Float64Array,
  i64: BigInt64Array,
} as const
export type ModelType = keyof typeof arrays
export const modelTypes = Object.keys(arrays) as ModelType[]
export type ModelArray = InstanceType<(typeof arrays)[ModelType]>

/** What memory should hold, and who used it last. */
export class Block {
  readonly bytes: Uint8Array
  /** Which bytes have a defined value: 1 where they do. */
  readonly defined: Uint8Array
  lastWrite: Use | undefined
  reads: Use[] = []

  constructor(byteLength: number) {
    this.bytes = new Uint8Array(byteLength)
    this.defined = new Uint8Array(byteLength)
  }

  write(offset: number, bytes: Uint8Array): void {
    this.bytes.set(bytes, offset)
    this.defined.fill(1, offset, offset + bytes.length)
  }

  /** Of a copy of memory some of which may have no defined value. */
  copy(offset: number, from: Expected): void {
    this.bytes.set(from.bytes, offset)
    this.defined.set(from.defined, offset)
  }

  forget(offset = 0, length: number = this.bytes.length): void {
    this.defined.fill(0, offset, offset + length)
  }

  expected(offset: number, length: number): Expected {
    return { bytes: this.bytes.slice(offset, offset + length), defined: this.defined.slice(offset, offset + length) }
  }
}

/** Contents as they should be. */
export interface Expected {
  readonly bytes: Uint8Array
  readonly defined: Uint8Array
}

/** The first byte that is not as it should be. */
export function firstDifference(found: Uint8Array, { bytes, defined }: Expected): string | undefined {
  if (found.length !== bytes.length) return `${found.length} bytes where ${bytes.length} were expected`
  for (let index = 0; index < found.length; index += 1) {
    if (defined[index] === 1 && found[index] !== bytes[index]) {
      return `byte ${index} of ${found.length} is ${found[index]} and should be ${bytes[index]}`
    }
  }
  return undefined
}

export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

/** What has memory and is disposed of. */
export interface Root {
  readonly name: string
  readonly device: number
  block: Block
  disposed: boolean
  /** Ends it; the model has seen to it that nobody uses it any more. */
  dispose(): void | Promise<void>
  /** The object itself, for what can be done with it after its end. */
  readonly object: object
}

/** Elements on a device: what all operations on memory work with. */
export interface Memory {
  readonly name: string
  readonly root: Root
  readonly buffer: DeviceBuffer<ModelType>
  readonly dtype: ModelType
  readonly offset: number
  readonly length: number
  readonly byteLength: number
}
