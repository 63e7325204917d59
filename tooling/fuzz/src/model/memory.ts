import type { DeviceBuffer } from '@shoal/driver'
import type { Use } from './clock.js'

/** The element types of the model, with the typed array for each. */
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

/** Expected content of memory, and its last uses. */
export class Block {
  readonly bytes: Uint8Array
  /** 1 for each byte that has a defined value. */
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

  /** Records a copy from memory that may have undefined bytes. */
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

/** Expected content. */
export interface Expected {
  readonly bytes: Uint8Array
  readonly defined: Uint8Array
}

/** Describes the first byte that differs from the expected content. */
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

/** An object that owns memory and can be disposed of. */
export interface Root {
  readonly name: string
  readonly device: number
  block: Block
  disposed: boolean
  /** Disposes of the object. The model has made sure that nothing uses the memory any more. */
  dispose(): void | Promise<void>
  /** The object itself, for calls that are made after its disposal. */
  readonly object: object
}

/** Elements on a device: the operand of all operations on memory. */
export interface Memory {
  readonly name: string
  readonly root: Root
  readonly buffer: DeviceBuffer<ModelType>
  readonly dtype: ModelType
  readonly offset: number
  readonly length: number
  readonly byteLength: number
}
