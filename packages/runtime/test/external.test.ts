import { ftruncateSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { setDevice, Stream } = await import('@shoal/runtime')
const { ExternalMemory, ExternalSemaphore, signalSemaphores, waitSemaphores } = await import('@shoal/runtime/external')
const { Graph, signalSemaphoresNode, waitSemaphoresNode } = await import('@shoal/runtime/graph')

const folder = mkdtempSync(join(tmpdir(), 'shoal-external-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
beforeEach(() => void setDevice(0))

function memoryFile(name: string, byteLength: number): number {
  const descriptor = openSync(join(folder, name), 'w+')
  ftruncateSync(descriptor, byteLength)
  return descriptor
}

test('ExternalMemory and ExternalSemaphore default to the current device', async () => {
  const description = { type: 'opaque-fd', handle: memoryFile('memory', 4096), byteLength: 4096 } as const
  using memory = ExternalMemory.import(description, { device: 1 })
  using semaphore = ExternalSemaphore.import({ type: 'timeline-fd', handle: memoryFile('semaphore', 8) })
  expect([memory.device.ordinal, semaphore.device.ordinal]).toEqual([1, 0])
  expect(memory).toBeInstanceOf(ExternalMemory)
  using bytes = memory.map('u8', { length: 16 })
  expect([...bytes.fillSync(3).toArraySync()]).toEqual(new Array(16).fill(3))
  using stream = Stream.create({ nonBlocking: true })
  using other = Stream.create({ nonBlocking: true })
  waitSemaphores([{ semaphore, value: 2 }], { stream })
  expect(stream.query()).toBe(false)
  signalSemaphores([{ semaphore, value: 2 }], { stream: other })
  await stream.synchronize()
  using graph = Graph.create()
  const wait = graph.add(waitSemaphoresNode([{ semaphore, value: 2 }]))
  graph.add(signalSemaphoresNode([{ semaphore, value: 3 }]), { dependencies: [wait] })
  using exec = graph.instantiate()
  exec.launch(stream)
  waitSemaphores([{ semaphore, value: 3 }], { stream: other })
  await other.synchronize()
  expect(() => ExternalMemory.import({ ...description, byteLength: 0 })).toThrow(/^ExternalMemory.import: byteLength/)
  expect(() => ExternalSemaphore.import(description as never)).toThrow(
    /description must have only the keys type, handle/,
  )
})
