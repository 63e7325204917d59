import { isArray, requireInteger, wrongType } from '@shoal/types'

/** One, two or three sizes. Omitted sizes are 1. */
export type Dimensions = number | readonly [x: number, y?: number, z?: number]

/** Returns three checked sizes from one, two or three. @throws TypeError, RangeError */
export function dimensionsOf(
  dimensions: Dimensions,
  api: string,
  name: string,
  limits: readonly [number, number, number],
): readonly [number, number, number] {
  const axis = (index: 0 | 1 | 2): number => dimensionAt(dimensions, index, api, name, limits)
  return [axis(0), axis(1), axis(2)]
}

/** Returns one checked size. @throws TypeError, RangeError */
export function dimensionAt(
  dimensions: Dimensions,
  axis: 0 | 1 | 2,
  api: string,
  name: string,
  limits: readonly [number, number, number],
): number {
  if (typeof dimensions === 'number') {
    return axis === 0 ? requireInteger(dimensions, api, name, 1, limits[0]) : 1
  }
  if (!isArray(dimensions) || dimensions.length < 1 || dimensions.length > 3) {
    throw wrongType(api, name, 'a number or one to three numbers', dimensions)
  }
  const value = (dimensions as readonly (number | undefined)[])[axis]
  return value === undefined && axis > 0 ? 1 : requireInteger(value, api, `${name}[${axis}]`, 1, limits[axis])
}
