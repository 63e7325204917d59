// The process that exchange.ts sends memory to: maps it, answers, releases it, answers again.
import { AddressRange, DescriptorSocket, Device, PhysicalMemory, receiveHandle } from '@shoal/driver'

const device = Device.get(0)
const range = AddressRange.reserve(Number(process.argv[2]))
const socket = DescriptorSocket.adopt(4)
const word = new Uint8Array(1)
await socket.send({ bytes: word })
for (;;) {
  const handle = await receiveHandle(socket, 'memory').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') return undefined
    throw error
  })
  if (handle === undefined) break
  const memory = PhysicalMemory.import(device, handle)
  if ('dispose' in handle) handle.dispose()
  const mapped = range.map(memory)
  await socket.send({ bytes: word })
  mapped.dispose()
  memory.dispose()
  await socket.send({ bytes: word })
}
range.dispose()
