import { type Device, GrowableBuffer, type Stream } from '@shoal/driver'
import { RowWriter } from './rowWriter.js'

/** A tensor of rows that grows in place. */
export class GrowingTensor {
  readonly #width: number
  readonly #buffer: GrowableBuffer<'f32'>
  readonly #writer: RowWriter
  /** How often memory was added. */
  growths = 0

  constructor(device: Device, width: number, mostRows: number) {
    this.#width = width
    // Addresses for all rows there may ever be; memory for none of them yet.
    this.#buffer = GrowableBuffer.reserve(device, 'f32', { maximumLength: mostRows * width })
    // The writer receives the address once, before memory is mapped there.
    this.#writer = new RowWriter(device, this.#buffer.address, width)
  }

  get address(): bigint {
    return this.#buffer.address
  }

  get bytesOfMemory(): number {
    return this.#buffer.capacity * 4
  }

  append(row: number, value: number, stream: Stream): void {
    const { capacity } = this.#buffer
    this.#buffer.resize((row + 1) * this.#width)
    if (this.#buffer.capacity !== capacity) this.growths += 1
    this.#writer.write(row, value, stream)
  }

  /** One element of each row. */
  async firstColumn(rows: number): Promise<Float32Array> {
    const all = await this.#buffer.buffer.toArray()
    return Float32Array.from({ length: rows }, (_, row) => all[row * this.#width] as number)
  }

  dispose(): void {
    this.#buffer.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}
