// Passes memory to another process, the counterpart of native/exchange.c: BYTES. Starts the other process itself, with:
// BYTES receive.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { AddressRange, DescriptorSocket, Device, PhysicalMemory, receiveHandle, sendHandle } from '@shoal/driver'
import { answerRequests } from '../processes/serve.js'

const [bytes = 0, role] = process.argv.slice(2)
const word = new Uint8Array(1)
const waiting = { timeout: 60_000 }

if (role === 'receive') await receive(DescriptorSocket.adopt(3), Number(bytes))
else await send(Number(bytes))

async function send(size: number): Promise<void> {
  const [socket, other] = DescriptorSocket.pair()
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), String(size), 'receive'], {
    stdio: ['ignore', 'inherit', 'inherit', other.descriptor],
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  other.dispose()
  const memory = PhysicalMemory.create(Device.get(0), size, { handleTypes: 'posix-fd' })
  await socket.receive(waiting)
  await answerRequests('ready', async ([, count]) => {
    let milliseconds = 0
    for (let i = 0; i < Number(count); i += 1) {
      const start = performance.now()
      const handle = memory.export()
      await sendHandle(socket, handle, waiting)
      handle.dispose()
      await socket.receive(waiting)
      milliseconds += performance.now() - start
      await socket.receive(waiting)
    }
    return (milliseconds * 1e6) / Number(count)
  })
  memory.dispose()
  socket.dispose()
  await ended
}

/** Maps the received memory, answers, releases it, and answers again. */
async function receive(socket: DescriptorSocket, size: number): Promise<void> {
  const device = Device.get(0)
  const range = AddressRange.reserve(size)
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
}
