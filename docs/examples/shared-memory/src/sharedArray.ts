import {
  AddressRange,
  allocationGranularity,
  type Device,
  DeviceBuffer,
  type MappedRange,
  PhysicalMemory,
  type ShareableHandle,
} from '@shoal/driver'

/** Number of elements, known to both processes, because the handle contains only bytes. */
const elements = 1_000_000

/** Physical memory at an address of this process: made here, or by another process. */
export class SharedArray {
  readonly buffer: DeviceBuffer<'u32'>
  readonly memory: PhysicalMemory
  readonly #mapped: MappedRange

  private constructor(device: Device, memory: PhysicalMemory, mapped: MappedRange) {
    this.memory = memory
    this.#mapped = mapped
    this.buffer = DeviceBuffer.view(device, mapped, 'u32', { length: elements })
  }

  static #map(device: Device, memory: PhysicalMemory): SharedArray {
    try {
      // The range is disposed at once. Its addresses are freed when the memory there is unmapped.
      using range = AddressRange.reserve(memory.byteLength)
      return new SharedArray(device, memory, range.map(memory))
    } catch (error) {
      memory.dispose()
      throw error
    }
  }

  /** Makes memory that can be given to another process as a file descriptor. */
  static create(device: Device): SharedArray {
    const options = { handleTypes: 'posix-fd' } as const
    const granularity = allocationGranularity(device, options)
    const byteLength = Math.ceil((elements * 4) / granularity) * granularity
    return SharedArray.#map(device, PhysicalMemory.create(device, byteLength, options))
  }

  /** Maps memory of another process. The handle stays the caller's. */
  static open(device: Device, handle: ShareableHandle<'memory'>): SharedArray {
    return SharedArray.#map(device, PhysicalMemory.import(device, handle))
  }

  /** Writes `valueFor(index)` to every element. */
  write(valueFor: (index: number) => number): void {
    this.buffer.copyFrom(Uint32Array.from({ length: elements }, (_, index) => valueFor(index)))
    this.buffer.context.synchronizeSync()
  }

  /** @throws Error that names the first element that is another one. */
  async check(valueFor: (index: number) => number): Promise<string> {
    const values = await this.buffer.toArray()
    const wrong = values.findIndex((value, index) => value !== valueFor(index))
    if (wrong >= 0) throw new Error(`element ${wrong} is ${values[wrong]}, should be ${valueFor(wrong)}`)
    return `all ${values.length} elements are right`
  }

  /** Unmaps the memory. It is freed once no process has it any more. */
  dispose(): void {
    this.buffer.dispose()
    this.#mapped.dispose()
    this.memory.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}

/** What the owner writes. */
export const question = (index: number): number => index

/** What the other process makes of it. */
export const answer = (index: number): number => index * 2 + 1
