import { type ElementType, type OptionKeys, requireInteger, requireOptions } from '@shoal/types'

/** How many elements pitched memory has: in a row, rows, and slices of rows. */
export interface Extent {
  /** Elements in a row. */
  readonly width: number
  /** Rows in a slice. */
  readonly height: number
  /** Slices. Default: 1. */
  readonly depth?: number | undefined
}

/** How many elements an array has for pitched memory, and which. */
export interface PitchedOptions<E extends ElementType = ElementType> extends Extent {
  /** What the bits of the array mean, or which struct the objects of a list are. Default: the array's own type. */
  readonly dtype?: E | undefined
}

/** A part of pitched memory, in elements, rows and slices. */
export interface Region {
  /** The first element of each row. Default: 0. */
  readonly x?: number | undefined
  /** The first row of each slice. Default: 0. */
  readonly y?: number | undefined
  /** The first slice. Default: 0. */
  readonly z?: number | undefined
  /** Elements of a row. Default: as far as the memory goes. */
  readonly width?: number | undefined
  /** Rows. Default: as far as the memory goes. */
  readonly height?: number | undefined
  /** Slices. Default: as far as the memory goes. */
  readonly depth?: number | undefined
}

export const extentKeys: OptionKeys<Extent> = { width: true, height: true, depth: true }
export const fromKeys: OptionKeys<PitchedOptions> = { ...extentKeys, dtype: true }
const regionKeys: OptionKeys<Region> = { x: true, y: true, z: true, width: true, height: true, depth: true }

/** Where rows lie in the memory that was allocated, and how many there are. */
export interface Place {
  /** Bytes before the first element. */
  readonly offset: number
  /** Bytes from row to row. */
  readonly pitch: number
  /** Rows from slice to slice. */
  readonly rows: number
  readonly width: number
  readonly height: number
  readonly depth: number
}

/** Where a part lies in the memory that the whole lies in. @throws TypeError, RangeError */
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
