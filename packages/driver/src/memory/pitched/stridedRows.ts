import {
  type ElementType,
  isMemoryLike,
  type MemoryRange,
  memoryProtocol,
  outOfRange,
  type StridedRange,
  toStridedRange,
  wrongType,
} from '@shoal/types'
import { bytesOfElement, nameOfType } from '../buffers/elementType.js'
import type { BoxSide } from './boxCopy.js'

/** Elements in rows, with the shape of a `PitchedBuffer`. */
export interface RowShape {
  readonly dtype: ElementType
  readonly width: number
  readonly height: number
  readonly depth: number
}

/** Returns the memory protocol's answer for elements in rows: two dimensions, or three for several slices. */
export function stridedAnswer(
  { dtype, width, height, depth }: RowShape,
  pitch: number,
  slicePitch: number,
): Pick<StridedRange, 'version' | 'dtype' | 'length' | 'shape' | 'strides'> {
  const bytes = bytesOfElement(dtype)
  // Strides count elements. So the type must be known to the protocol, and each row must start with a whole element.
  const isTyped = typeof dtype === 'string' && pitch % bytes === 0
  const [unit, perElement] = isTyped ? [bytes, 1] : [1, bytes]
  const shape = [depth, height, width * perElement]
  const strides = [slicePitch / unit, pitch / unit, 1]
  const first = depth === 1 ? 1 : 0
  return {
    version: 1,
    dtype: isTyped ? dtype : 'u8',
    length: width * height * depth * perElement,
    shape: shape.slice(first),
    strides: strides.slice(first),
  }
}

/** Other code's memory with distances between rows. */
export interface StridedRows {
  readonly range: MemoryRange
  readonly side: BoxSide
}

/**
 * Returns rows of memory with strides, such as a DLPack tensor, if it has the same shape; undefined for memory without
 * strides.
 * @throws TypeError for another dtype, RangeError for another shape, or strides that a 3-D copy cannot represent
 */
export function stridedRows(memory: unknown, wanted: RowShape, api: string, name: string): StridedRows | undefined {
  if (!isMemoryLike(memory) || (memory[memoryProtocol]?.strides ?? null) === null) return undefined
  const range = toStridedRange(memory, api, name)
  const { dtype, width, height, depth } = wanted
  const others = typeof dtype === 'string' ? dtype : 'u8'
  if (range.dtype !== others) throw wrongType(api, name, `of ${nameOfType(dtype)}`, range.dtype)
  const bytes = bytesOfElement(others)
  const expected = [depth, height, (width * bytesOfElement(dtype)) / bytes]
  const least = Math.max(range.shape.length, 3)
  const shape = [...new Array<number>(least - range.shape.length).fill(1), ...range.shape]
  const strides = [...new Array<number>(least - range.shape.length).fill(0), ...range.strides]
  const outer = shape.splice(0, least - 3)
  if (outer.some((extent) => extent !== 1) || shape.some((extent, axis) => extent !== expected[axis])) {
    throw outOfRange(api, name, `of the shape [${expected}] (region() takes parts)`, `[${range.shape}]`)
  }
  const [slice = 0, row = 0, element = 0] = strides.slice(-3)
  const rowBytes = (expected[2] as number) * bytes
  const pitch = height === 1 ? rowBytes : row * bytes
  const slicePitch = depth === 1 ? pitch * height : slice * bytes
  if (
    (expected[2] !== 1 && element !== 1) ||
    pitch < rowBytes ||
    slicePitch % pitch !== 0 ||
    slicePitch / pitch < height
  ) {
    throw outOfRange(
      api,
      name,
      'rows of elements without gaps, and slices a whole number of rows apart',
      `strides [${range.strides}]`,
    )
  }
  const { address, deviceOrdinal } = range
  return { range, side: { address, pitch, rows: slicePitch / pitch, isHost: deviceOrdinal < 0 } }
}
