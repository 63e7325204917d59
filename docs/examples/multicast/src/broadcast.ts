import { AddressRange, type Device, DeviceBuffer, MulticastObject, PhysicalMemory } from '@shoal/driver'

/** Binds memory of every device to one multicast object, writes through it once, and reads each device's own memory. */
export function broadcastOnce(devices: readonly Device[], byteLength: number): number {
  const [first] = devices as readonly [Device]
  using multicast = MulticastObject.create({ deviceCount: devices.length, byteLength })
  // All devices first: memory can be bound when the last one has been added.
  for (const device of devices) multicast.addDevice(device)

  const replicas = devices.map((device) => new Replica(device, byteLength, multicast))
  try {
    using range = AddressRange.reserve(byteLength)
    using mapped = range.map(multicast, { access: [{ place: first, access: 'readWrite' }] })
    using everywhere = DeviceBuffer.view(first, mapped, 'u32')

    const values = Uint32Array.from({ length: everywhere.length }, (_, index) => index * 3 + 1)
    everywhere.copyFrom(values)
    first.primaryContext.synchronizeSync()
    console.log(`wrote ${values.byteLength} bytes once, through an address of device ${first.ordinal}`)

    // A part of it, and by another operation.
    everywhere.slice(0, 1000).fill(7)
    first.primaryContext.synchronizeSync()
    values.fill(7, 0, 1000)

    return replicas.every((replica) => replica.check(values)) ? 0 : 1
  } finally {
    for (const replica of replicas) replica.dispose()
  }
}

/** The memory of one device, mapped at its own address and bound to the multicast object. */
class Replica {
  readonly #device: Device
  readonly #buffer: DeviceBuffer<'u32'>
  readonly #release: () => void

  constructor(device: Device, byteLength: number, multicast: MulticastObject) {
    using memory = PhysicalMemory.create(device, byteLength)
    using range = AddressRange.reserve(byteLength)
    const mapped = range.map(memory)
    this.#device = device
    this.#buffer = DeviceBuffer.view(device, mapped, 'u32')
    this.#buffer.fill(0)
    device.primaryContext.synchronizeSync()
    // All devices were added, so this does not wait.
    multicast.bindMemorySync(memory)
    this.#release = () => mapped.dispose()
  }

  /** Whether the device's own memory holds these values. */
  check(values: Uint32Array): boolean {
    const own = this.#buffer.toArraySync()
    const wrong = own.findIndex((value, index) => value !== values[index])
    if (wrong < 0) {
      console.log(`device ${this.#device.ordinal}: all ${own.length} elements arrived`)
      return true
    }
    console.error(`MISMATCH: element ${wrong} of device ${this.#device.ordinal} is ${own[wrong]}`)
    return false
  }

  dispose(): void {
    this.#buffer.dispose()
    this.#release()
  }
}
