import { type Device, DeviceBuffer, type Stream } from '@shoal/driver'

/** The same tensor as it is made without reserved addresses: twice the memory when it is full, and all rows copied. */
export class CopyingTensor {
  readonly #device: Device
  readonly #width: number
  #buffer: DeviceBuffer<'f32'>
  growths = 0
  bytesCopied = 0
  /** The most memory there was at once. */
  mostBytes = 0

  constructor(device: Device, width: number) {
    this.#device = device
    this.#width = width
    this.#buffer = DeviceBuffer.allocate(device, 'f32', width)
  }

  async append(row: number, value: number, stream: Stream): Promise<void> {
    const start = row * this.#width
    if (start + this.#width > this.#buffer.length) await this.#grow(stream)
    this.#buffer.slice(start, start + this.#width).fill(value, { stream })
  }

  dispose(): void {
    this.#buffer.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  async #grow(stream: Stream): Promise<void> {
    const old = this.#buffer
    const larger = DeviceBuffer.allocate(this.#device, 'f32', old.length * 2)
    this.mostBytes = old.byteLength + larger.byteLength
    larger.slice(0, old.length).copyFrom(old, { stream })
    // Every holder of the old address would need the new one. Here no other object holds it.
    this.#buffer = larger
    this.bytesCopied += old.byteLength
    this.growths += 1
    await stream.synchronize()
    old.dispose()
  }
}
