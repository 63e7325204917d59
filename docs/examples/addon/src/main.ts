// A buffer and a stream of Shoal's, in the hands of an addon that opens the driver itself.
import { createRequire } from 'node:module'
import { Device, DeviceBuffer } from '@shoal/driver'
import type { MemoryLike, StreamLike } from '@shoal/types'

const addon = `../prebuilds/${process.platform}-${process.arch}/fill.node`
const fill = createRequire(import.meta.url)(addon) as (memory: MemoryLike, byte: number, stream?: StreamLike) => void

const device = Device.get(0)
using stream = device.createStream()
using buffer = DeviceBuffer.zeros(device, 'u8', 1_000_003)
fill(buffer, 7, stream) // queued by C++
const bytes = await buffer.toArray({ stream }) // queued by Shoal, on the same stream
console.log(`${device.name}: ${bytes.filter((byte) => byte === 7).length} of ${buffer.length} bytes are 7`)

buffer.dispose()
try {
  fill(buffer, 8, stream)
} catch (error) {
  console.log(`afterwards: ${(error as Error).name}`)
}
