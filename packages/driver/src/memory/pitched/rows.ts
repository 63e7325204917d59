import {
  type CUdeviceptr,
  type CUstream,
  cuMemsetD2D8Async,
  cuMemsetD2D16Async,
  cuMemsetD2D32Async,
} from '@shoal/cuda-sys/driver'
import { addressOf } from '@shoal/ffi'
import type { Context } from '../../core/context/context.js'
import { halvesOf } from '../../core/u64Halves.js'
import { queueFill } from '../buffers/fill.js'
import type { RowsInMemory } from '../buffers/hostCopy.js'
import { type BoxEnd, type BoxSide, type BoxSize, queueBoxCopy } from './boxCopy.js'

/** Rows of pitched memory, with fills and copies. */
export class Rows implements RowsInMemory {
  readonly kind = 'PitchedBuffer'
  readonly #side: BoxSide
  readonly #size: BoxSize

  constructor(side: BoxSide, size: BoxSize) {
    this.#side = side
    this.#size = size
  }

  copyIn(context: Context, stream: CUstream, start: number, from: ArrayBufferView | bigint, byteLength: number): void {
    this.#forEachBox(start, byteLength, hostAddress(from), (rows, host, size) =>
      queueBoxCopy(context, stream, endOf(context, rows), endOf(context, host), size),
    )
  }

  copyOut(context: Context, stream: CUstream, start: number, to: ArrayBufferView | bigint, byteLength: number): void {
    this.#forEachBox(start, byteLength, hostAddress(to), (rows, host, size) =>
      queueBoxCopy(context, stream, endOf(context, host), endOf(context, rows), size),
    )
  }

  /** Queues a fill of every element of all rows. */
  fill(context: Context, stream: CUstream, element: DataView): void {
    const { address, pitch, rows } = this.#side
    const { width, height, depth } = this.#size
    const bytes = element.byteLength
    if (bytes > 4 || bytes === 3) {
      this.#fillWide(context, stream, element)
      return
    }
    // Slices without a gap between them are rows of one large slice.
    const isOne = rows === height || depth === 1
    for (let slice = 0; slice < (isOne ? 1 : depth); slice += 1) {
      const to = (address + BigInt(slice * rows * pitch)) as CUdeviceptr
      const [count, lines] = [width / bytes, isOne ? height * depth : height]
      if (bytes === 1) {
        const value = element.getUint8(0)
        context._callDriver('cuMemsetD2D8Async', () => cuMemsetD2D8Async(to, pitch, value, count, lines, stream))
      } else if (bytes === 2) {
        const value = element.getUint16(0, true)
        context._callDriver('cuMemsetD2D16Async', () => cuMemsetD2D16Async(to, pitch, value, count, lines, stream))
      } else {
        const value = element.getUint32(0, true)
        context._callDriver('cuMemsetD2D32Async', () => cuMemsetD2D32Async(to, pitch, value, count, lines, stream))
      }
    }
  }

  /**
   * Fills with elements wider than CUDA's widest memset: fills one row, copies it to the next, these two to the next
   * two, and so on.
   */
  #fillWide(context: Context, stream: CUstream, element: DataView): void {
    const side = this.#side
    const { address, pitch, rows } = side
    const { width, height, depth } = this.#size
    queueFill(context, halvesOf(stream), address, element, width / element.byteLength)
    for (let done = 1; done < height; done *= 2) {
      const next = { ...side, address: address + BigInt(done * pitch) }
      queueBoxCopy(context, stream, endOf(context, next), endOf(context, side), {
        width,
        height: Math.min(done, height - done),
        depth: 1,
      })
    }
    for (let done = 1; done < depth; done *= 2) {
      const next = { ...side, address: address + BigInt(done * rows * pitch) }
      queueBoxCopy(context, stream, endOf(context, next), endOf(context, side), {
        width,
        height,
        depth: Math.min(done, depth - done),
      })
    }
  }

  /** Splits a byte range, counted without gaps, into as few boxes as possible. */
  #forEachBox(
    start: number,
    byteLength: number,
    host: bigint,
    queue: (rows: BoxSide, host: BoxSide, size: BoxSize) => void,
  ): void {
    const { address, pitch, rows } = this.#side
    const { width, height } = this.#size
    for (let done = 0; done < byteLength; ) {
      const row = Math.floor((start + done) / width)
      const inRow = (start + done) % width
      const [slice, line] = [Math.floor(row / height), row % height]
      const left = byteLength - done
      let size: BoxSize = { width: Math.min(left, width - inRow), height: 1, depth: 1 }
      if (inRow === 0 && left >= width) {
        const lines = Math.floor(left / width)
        const isWhole = line === 0 && lines >= height
        size = {
          width,
          height: isWhole ? height : Math.min(lines, height - line),
          depth: isWhole ? Math.floor(lines / height) : 1,
        }
      }
      const first = { address: address + BigInt((slice * rows + line) * pitch + inRow), pitch, rows }
      queue(first, { address: host + BigInt(done), isHost: true, pitch: width, rows: size.height }, size)
      done += size.width * size.height * size.depth
    }
  }
}

function hostAddress(memory: ArrayBufferView | bigint): bigint {
  return typeof memory === 'bigint' ? memory : addressOf(memory)
}

/** Memory of the host or of the context's own device. */
function endOf(context: Context, side: BoxSide): BoxEnd {
  return { side, deviceOrdinal: side.isHost ? -1 : context.device.ordinal, context: context._handle }
}
