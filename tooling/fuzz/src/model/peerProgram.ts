/** Another process: it opens memory, events and pools of its parent, reads and writes what it finds, and closes it again. */
import { DescriptorSocket, Device, IpcMemory, MemoryPool, openIpcEvent, receiveHandle } from '@shoal/driver'
import { bytesOf } from './memory.js'
import type { Answer, Question } from './peerProcess.js'

const devices = Device.all()
let socket: DescriptorSocket | undefined

/** Puts a byte on each of the first elements, after it has looked what was there. */
function exchange(buffer: import('@shoal/driver').DeviceBuffer, value: number): string {
  const found = buffer.toArraySync() as ArrayBufferView
  buffer.reinterpret('u8').fillSync(value)
  return Buffer.from(bytesOf(found)).toString('base64')
}

async function answer(question: Question): Promise<string> {
  const device = devices[question.device] as Device
  switch (question.kind) {
    case 'memory': {
      using memory = IpcMemory.open(device, question.handle)
      return exchange(memory.buffer as never, question.value)
    }
    case 'event': {
      using event = openIpcEvent(device, question.handle)
      await event.synchronize()
      return String(event.query())
    }
    default: {
      socket ??= DescriptorSocket.connect(question.path)
      const handle = await receiveHandle(socket, 'pool')
      using pool = MemoryPool.import(device, handle)
      handle.dispose()
      using stream = device.createStream()
      const buffer = pool.importPointer(stream, question.pointer)
      try {
        return exchange(buffer as never, question.value)
      } finally {
        buffer.disposeOn(stream)
        await stream.synchronize()
      }
    }
  }
}

process.on('message', (question: Question) => {
  answer(question).then(
    (found) => process.send?.({ found } satisfies Answer),
    (error: unknown) =>
      process.send?.({
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      } satisfies Answer),
  )
})
process.on('disconnect', () => process.exit(0))
