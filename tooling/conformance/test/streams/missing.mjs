// Omits the stream in several places, in loops, while a non-blocking stream exists.
import { Device, DeviceBuffer } from '@shoal/driver'
import { Communicator } from '@shoal/nccl'

const device = Device.get(0)
const memory = DeviceBuffer.zeros(device, 'f32', 8)
memory.fill(1) // no non-blocking stream exists yet
const stream = device.createStream({ nonBlocking: true })
const [communicator] = await Communicator.initAll([device])
for (let round = 0; round < 3; round += 1) {
  memory.fill(2)
  memory.fill(3, { stream })
  memory.fill(4, { stream: null })
  stream.use(() => memory.fill(5))
  memory.copyFrom(new Float32Array(8))
  communicator.allReduce(memory, memory)
}
await device.synchronize()
await communicator.destroy()
