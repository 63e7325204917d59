import { randomBytes } from 'node:crypto'
import { type DType, type DTypeInfo, defineStruct, dtypeInfo, type StorageArray } from '@shoal/types'

/** A struct with padding in the middle and at the end. */
export const Particle = defineStruct('Particle', { id: 'u32', weight: 'f64', tag: 'u8' })

export interface ParticleValue {
  readonly id: number
  readonly weight: number
  readonly tag: number
}

export function randomInteger(least: number, end: number): number {
  return least + Math.floor(Math.random() * (end - least))
}

export function randomParticles(length: number): ParticleValue[] {
  return Array.from({ length }, () => ({
    id: randomInteger(0, 2 ** 32),
    weight: Math.random() * 1e9,
    tag: randomInteger(0, 256),
  }))
}

/** Returns an array of random bits for elements of a dtype. */
export function randomArray<D extends DType>(dtype: D, length: number): StorageArray {
  const { typedArray, arrayEntries } = dtypeInfo(dtype) as DTypeInfo<DType>
  const array = new typedArray(length * arrayEntries)
  bytes(array).set(randomBytes(array.byteLength))
  return array
}

export function bytes(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}

/** Returns numbers without NaN, because NaN is not equal to itself. */
export function randomFloats(length: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length }, () => Math.random() * 2 - 1)
}

class LyingArray extends Float32Array {
  override get byteLength(): number {
    return 1 << 20
  }
  override get length(): number {
    return 1 << 18
  }
  override get byteOffset(): number {
    return 1 << 16
  }
}

/** Objects over the same memory as `array` that report a false length of one megabyte. */
export function falseLengths(array: Float32Array<ArrayBuffer>): { readonly [how: string]: Float32Array<ArrayBuffer> } {
  const { buffer, byteOffset, length } = array
  const own = new Float32Array(buffer, byteOffset, length)
  for (const [name, value] of [
    ['byteLength', 1 << 20],
    ['length', 1 << 18],
    ['byteOffset', 1 << 16],
  ] as const) {
    Object.defineProperty(own, name, { value })
  }
  return { subclass: new LyingArray(buffer, byteOffset, length) as Float32Array<ArrayBuffer>, own }
}
