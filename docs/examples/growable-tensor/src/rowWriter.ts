import { type Device, DeviceBuffer, type Stream } from '@shoal/driver'

/**
 * Represents a kernel, a captured graph or another library that receives an address once and keeps using it. It does
 * not know the buffer at that address.
 */
export class RowWriter {
  readonly #device: Device
  readonly #address: bigint
  readonly #width: number

  constructor(device: Device, address: bigint, width: number) {
    this.#device = device
    this.#address = address
    this.#width = width
  }

  /** Writes a value to every element of a row. */
  write(row: number, value: number, stream: Stream): void {
    const address = this.#address + BigInt(row * this.#width * 4)
    DeviceBuffer.fromAddress(this.#device, address, 'f32', this.#width).fill(value, { stream })
  }
}
