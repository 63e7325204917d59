/** Arrays of the host: valid arrays, and arrays that report a false size. */
import { arrays, bytesOf, type ModelArray, type ModelType } from '../memory.js'
import { Mismatch } from '../operation.js'
import type { Refusals, World } from '../world.js'

export interface HostArray {
  readonly array: ModelArray
  /** The real bytes of the array. */
  readonly bytes: Uint8Array
  readonly kind: string
  /** Allowed errors: a call must throw one of them. Empty for a valid array. */
  readonly refusals: Refusals
  /** Throws if a byte outside the array was written. */
  check(): void
}

const guard = 16
const guardByte = 0xa5

/** Returns an array of random elements inside a larger buffer. No call may write the other bytes of the buffer. */
export function hostArray(world: World, dtype: ModelType, length: number): HostArray {
  const values = world.values(dtype, length)
  const Shared = world.chance(0.1) ? SharedArrayBuffer : ArrayBuffer
  const whole = new Uint8Array(new Shared(values.byteLength + 2 * guard)).fill(guardByte)
  whole.set(bytesOf(values), guard)
  const array = new arrays[dtype](whole.buffer as ArrayBuffer, guard, length)
  const bytes = whole.subarray(guard, guard + values.byteLength)
  const check = (): void => {
    for (let index = 0; index < guard; index += 1) {
      if (whole[index] !== guardByte || whole[whole.length - 1 - index] !== guardByte) {
        throw new Mismatch(`bytes beside an array of ${length} ${dtype} were written`)
      }
    }
  }
  const good = { array, bytes, kind: 'an array', refusals: [], check }
  if (world.chance(0.7)) return good
  const statedLength = world.one([0, 1, length - 1, length + 1, length * 1000, -1, 2 ** 40])
  switch (world.random.integer(0, 8)) {
    case 0: {
      for (const key of ['length', 'byteLength', 'byteOffset']) {
        const value = key === 'length' ? statedLength : statedLength * array.BYTES_PER_ELEMENT
        Object.defineProperty(array, key, { value })
      }
      return { ...good, kind: `an array with a length of its own (${statedLength})` }
    }
    case 1: {
      class FalseLength extends (Uint8Array as Uint8ArrayConstructor) {
        override get byteLength(): number {
          return statedLength
        }
        override get length(): number {
          return statedLength
        }
        override get byteOffset(): number {
          return statedLength
        }
        override get buffer(): ArrayBuffer {
          return new ArrayBuffer(0)
        }
      }
      if (dtype !== 'u8') return good
      const falseLength = new FalseLength(whole.buffer as ArrayBuffer, guard, length)
      return { ...good, array: falseLength as Uint8Array<ArrayBuffer>, kind: `a subclass that says ${statedLength}` }
    }
    case 2:
      return { ...good, array: new Proxy(array, {}), kind: 'a proxy', refusals: [TypeError] }
    case 3: {
      const other = new arrays[dtype](length + 1)
      Object.defineProperty(other, 'length', { value: length })
      Object.defineProperty(other, 'byteLength', { value: values.byteLength })
      return { ...good, array: other, kind: 'an array that is longer than it says', refusals: [RangeError] }
    }
    case 4: {
      const other = new arrays[dtype](length - 1)
      Object.defineProperty(other, 'length', { value: length })
      Object.defineProperty(other, 'byteLength', { value: values.byteLength })
      return { ...good, array: other, kind: 'an array that is shorter than it says', refusals: [RangeError] }
    }
    case 5: {
      const other = new arrays[dtype](length)
      structuredClone(other, { transfer: [other.buffer] })
      return { ...good, array: other, kind: 'a detached array', refusals: [TypeError, RangeError] }
    }
    case 6: {
      const other = new arrays[dtype === 'f64' ? 'f32' : 'f64'](length)
      Object.setPrototypeOf(other, arrays[dtype].prototype)
      return { ...good, array: other, kind: 'an array of another type in disguise', refusals: [TypeError, RangeError] }
    }
    case 7: {
      Object.defineProperty(array, 'buffer', { value: new ArrayBuffer(1) })
      Object.defineProperty(array, 'constructor', { value: Float64Array })
      return { ...good, kind: 'an array with a buffer of its own' }
    }
    default: {
      const forged = Object.create(arrays[dtype].prototype) as ModelArray
      return { ...good, array: forged, kind: 'an object with the prototype', refusals: [TypeError] }
    }
  }
}
