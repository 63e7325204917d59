import { isArray } from '../anyValue.js'
import { requireInteger, wrongType } from '../arguments/scalars.js'
import { type DType, dtypeInfo } from '../dtypes/dtype.js'

/** Maximum number of dimensions, as in NumPy. */
const mostDimensions = 64

/** Layout of elements: extents and strides in elements, the outermost dimension first. */
export interface Layout {
  /** Extents. */
  readonly shape: readonly number[]
  /** Distance from one element of a dimension to the next, in elements. */
  readonly strides: readonly number[]
  /** Number of elements. */
  readonly length: number
}

/** Returns the strides of contiguous elements in row-major order. */
export function contiguousStrides(shape: readonly number[]): number[] {
  let step = 1
  const strides = new Array<number>(shape.length)
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    strides[axis] = step
    step *= shape[axis] as number
  }
  return strides
}

/** True for contiguous row-major elements. The stride of a dimension of one element does not matter. */
export function isContiguous({ shape, strides, length }: Layout): boolean {
  if (length === 0) return true
  const expected = contiguousStrides(shape)
  return shape.every((extent, axis) => extent === 1 || strides[axis] === expected[axis])
}

/** Bytes from the first element to the end of the last. */
export function spanOf({ shape, strides, length }: Layout, bytes: number): number {
  if (length === 0) return 0
  return bytes * shape.reduce((last, extent, axis) => last + (extent - 1) * (strides[axis] as number), 1)
}

/** Returns the checked layout of an answer. @throws TypeError, RangeError for contradictory values */
export function checkedLayout(
  given: {
    readonly byteLength: number
    readonly dtype: DType
    readonly length: number | undefined
    readonly shape: readonly number[]
    readonly strides: readonly number[] | null | undefined
  },
  api: string,
  name: string,
): Layout {
  const { byteLength, dtype } = given
  const shape = numbers(given.shape, api, `${name}.shape`)
  const length = shape.reduce((product, extent) => product * extent, 1)
  requireInteger(length, api, `the product of ${name}.shape`, 0)
  if (given.length !== undefined && given.length !== length) {
    throw new RangeError(
      `${api}: ${name}.shape must have ${given.length} elements, as ${name}.length says, not ${length}`,
    )
  }
  const own = given.strides ?? undefined
  const strides = own === undefined ? contiguousStrides(shape) : numbers(own, api, `${name}.strides`)
  if (strides.length !== shape.length) {
    throw new RangeError(
      `${api}: ${name}.strides must have ${shape.length} numbers, as ${name}.shape, not ${strides.length}`,
    )
  }
  const layout = { shape, strides, length }
  const span = spanOf(layout, dtypeInfo(dtype).bytes)
  if (span > byteLength) {
    const what = own === undefined ? 'shape' : 'strides'
    throw new RangeError(
      `${api}: ${name}.${what} must stay within ${byteLength} bytes, not reach byte ${span}, as ${dtype} in elements`,
    )
  }
  return layout
}

function numbers(given: readonly number[], api: string, name: string): number[] {
  if (!isArray(given)) throw wrongType(api, name, 'an array of integers', given)
  const list = Array.from(given)
  requireInteger(list.length, api, `${name}.length`, 0, mostDimensions)
  for (const [index, value] of list.entries()) requireInteger(value, api, `${name}[${index}]`, 0)
  return list
}
