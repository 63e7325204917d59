/**
 * Another process or thread. It opens memory, events and pools of its parent, reads and writes them, and closes them
 * again.
 */
import { parentPort } from 'node:worker_threads'
import { DescriptorSocket, Device, IpcMemory, MemoryPool, openIpcEvent, receiveHandle } from '@shoal/driver'
import { receive } from '@shoal/driver/sharing'
import { bytesOf } from './memory.js'
import type { Answer, Question } from './peer.js'

const devices = Device.all()
let socket: DescriptorSocket | undefined

/** Fills the buffer with a byte value, and returns the elements that it held before, in base64. */
function exchange(buffer: import('@shoal/driver').DeviceBuffer, value: number): string {
  const found = buffer.toArraySync() as ArrayBufferView
  buffer.reinterpret('u8').fillSync(value)
  return Buffer.from(bytesOf(found)).toString('base64')
}

async function answer(question: Question): Promise<string> {
  if (question.kind === 'shared') {
    using memory = await receive(parentPort ?? process, { timeout: question.timeout })
    return exchange(memory.buffer as never, question.value)
  }
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

const say = (told: Answer): void => {
  if (parentPort === null) process.send?.(told)
  else parentPort.postMessage(told)
}

;(parentPort ?? process).on('message', (question: Question | { readonly shoal: string }) => {
  // Messages between share() and receive().
  if ('shoal' in question) return
  answer(question).then(
    (found) => say({ found }),
    (error: unknown) => say({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})
if (parentPort === null) process.on('disconnect', () => process.exit(0))
