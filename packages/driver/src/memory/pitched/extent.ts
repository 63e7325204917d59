import { type ElementType, type OptionKeys, requireInteger, requireOptions } from '@shoal/types'

/** Size of pitched memory: elements per row, rows per slice, and slices. */
export interface Extent {
  /** Elements per row. */
  readonly width: number
  /** Rows per slice. */
  readonly height: number
  /** Number of slices. Default: 1. */
  readonly depth?: number | undefined
}

/** Extent and element type of an array for pitched memory. */
export interface PitchedOptions<E extends ElementType = ElementType> extends Extent {
  /**
   * Type of the elements that the array's bits represent, or the struct of the objects in a list. Default: the array's
   * own type.
   */
  readonly dtype?: E | undefined
}

/** A part of pitched memory, in elements, rows and slices. */
export interface Region {
  /** First element of each row. Default: 0. */
  readonly x?: number | undefined
  /** First row of each slice. Default: 0. */
  readonly y?: number | undefined
  /** First slice. Default: 0. */
  readonly z?: number | undefined
  /** Elements per row. Default: the rest of the row. */
  readonly width?: number | undefined
  /** Number of rows. Default: the remaining rows. */
  readonly height?: number | undefined
  /** Number of slices. Default: the remaining slices. */
  readonly depth?: number | undefined
}

export const extentKeys: OptionKeys<Extent> = { width: true, height: true, depth: true }
export const fromKeys: OptionKeys<PitchedOptions> = { ...extentKeys, dtype: true }
const regionKeys: OptionKeys<Region> = { x: true, y: true, z: true, width: true, height: true, depth: true }

/** Position of rows in the allocated memory, and their number. */
export interface Place {
  /** Offset of the first element in bytes. */
  readonly offset: number
  /** Distance between rows in bytes. */
  readonly pitch: number
  /** Number of rows per slice. */
  readonly rows: number
  readonly width: number
  readonly height: number
  readonly depth: number
}

/** Returns a region's position in the memory of the whole. @throws TypeError, RangeError */
export function placeOf(region: Region, whole: Place, elementBytes: number, api: string): Place {
  const { x = 0, y = 0, z = 0, ...size } = requireOptions(region, api, regionKeys, 'region')
  requireInteger(x, api, 'x', 0, whole.width - 1)
  requireInteger(y, api, 'y', 0, whole.height - 1)
  requireInteger(z, api, 'z', 0, whole.depth - 1)
  const { width = whole.width - x, height = whole.height - y, depth = whole.depth - z } = size
  requireInteger(width, api, 'width', 1, whole.width - x)
  requireInteger(height, api, 'height', 1, whole.height - y)
  requireInteger(depth, api, 'depth', 1, whole.depth - z)
  const offset = whole.offset + (z * whole.rows + y) * whole.pitch + x * elementBytes
  return { ...whole, offset, width, height, depth }
}
