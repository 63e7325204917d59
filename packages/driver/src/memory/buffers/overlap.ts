const fourGiB = 2 ** 32

/** Two addresses, compared here without a bigint for their difference. */
const ends = new BigUint64Array(2)
const halves = new Uint32Array(ends.buffer)

/** Rows and slices in memory, as copies use them. */
export interface RowsAt {
  readonly address: bigint
  /** Distance between rows in bytes. */
  readonly pitch: number
  /** Number of rows per slice. */
  readonly rows: number
}

/** Size of a copy: bytes per row, rows and slices. */
interface Size {
  readonly width: number
  readonly height: number
  readonly depth: number
}

/** Refuses a copy between overlapping memory. @throws RangeError */
export function refuseOverlap(api: string, name: string): never {
  throw new RangeError(
    `${api}: ${name} must not overlap what the copy writes, because a device copies in any order; copy through other memory`,
  )
}

/** Refuses a copy between memory that partly overlaps. Identical ranges are allowed. @throws RangeError */
export function requireApart(to: bigint, from: bigint, byteLength: number, api: string, name = 'source'): void {
  ends[0] = to
  ends[1] = from
  const high = (halves[1] as number) - (halves[3] as number)
  const distance = high * fourGiB + (halves[0] as number) - (halves[2] as number)
  if (distance !== 0 && distance < byteLength && -distance < byteLength) refuseOverlap(api, name)
}

/** Like {@link requireApart} for rows. Rows in the gaps of the other side do not overlap it. @throws RangeError */
export function requireRowsApart(to: RowsAt, from: RowsAt, size: Size, api: string): void {
  const { width, height, depth } = size
  const distance = Number(to.address - from.address)
  const isSame =
    distance === 0 && (height === 1 || to.pitch === from.pitch) && (depth === 1 || sliceOf(to) === sliceOf(from))
  if (isSame || distance >= spanOf(from, size) || -distance >= spanOf(to, size)) return
  for (let slice = 0; slice < depth; slice += 1) {
    for (let row = 0; row < height; row += 1) {
      const start = distance + slice * sliceOf(to) + row * to.pitch
      if (touchesRow(start, start + width, from, size)) refuseOverlap(api, 'source')
    }
  }
}

function sliceOf({ pitch, rows }: RowsAt): number {
  return pitch * rows
}

/** Returns the bytes from the first to the last. */
function spanOf(side: RowsAt, { width, height, depth }: Size): number {
  return (depth - 1) * sliceOf(side) + (height - 1) * side.pitch + width
}

/** Whether a byte range touches any row. It starts relative to the first row and has at most one row's bytes. */
function touchesRow(start: number, end: number, side: RowsAt, { width, height, depth }: Size): boolean {
  const slice = sliceOf(side)
  const lastSlice = depth === 1 ? 0 : Math.min(Math.floor((end - 1) / slice), depth - 1)
  for (let index = depth === 1 ? 0 : Math.max(Math.floor(start / slice), 0); index <= lastSlice; index += 1) {
    const [first, last] = [start - index * slice, end - index * slice]
    const lastRow = height === 1 ? 0 : Math.min(Math.floor((last - 1) / side.pitch), height - 1)
    for (let row = height === 1 ? 0 : Math.max(Math.floor(first / side.pitch), 0); row <= lastRow; row += 1) {
      if (first < row * side.pitch + width && last > row * side.pitch) return true
    }
  }
  return false
}

/** One copy of a batch. */
interface Piece {
  readonly to: number
  readonly from: number
  readonly byteLength: number
}

/** Refuses copies that access another copy's target, because a batch runs in no order. @throws RangeError */
export function requireNoRace(pieces: readonly Piece[], api: string): void {
  const order = pieces.map((_, index) => index).sort((one, other) => at(pieces, one).to - at(pieces, other).to)
  for (let place = 1; place < order.length; place += 1) {
    const [before, after] = [order[place - 1] as number, order[place] as number]
    const { to, byteLength } = at(pieces, before)
    if (to + byteLength > at(pieces, after).to) refuseRace(api, after, 'target', before)
  }
  for (const [index, { from, byteLength }] of pieces.entries()) {
    let [low, high] = [0, order.length]
    // Find the first target that ends after the source's start.
    while (low < high) {
      const middle = (low + high) >> 1
      const target = at(pieces, order[middle] as number)
      if (target.to + target.byteLength <= from) low = middle + 1
      else high = middle
    }
    for (; low < order.length; low += 1) {
      const other = order[low] as number
      if (at(pieces, other).to >= from + byteLength) break
      if (other !== index) refuseRace(api, index, 'source', other)
    }
  }
}

function at(pieces: readonly Piece[], index: number): Piece {
  return pieces[index] as Piece
}

function refuseRace(api: string, index: number, name: string, other: number): never {
  throw new RangeError(
    `${api}: copies[${index}].${name} must not overlap the target of copies[${other}], because copies of a batch run in any order`,
  )
}
