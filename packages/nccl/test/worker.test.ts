import { Worker } from 'node:worker_threads'
import { Communicator, group } from '@shoal/nccl'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

// A worker that sums over two devices with its own communicators, and then ends as requested: with everything open,
// during an init, or within a group.
const script = `
  const { parentPort, workerData } = require('node:worker_threads')
  import(workerData.nccl).then(async ({ Communicator, group, UniqueId }) => {
    if (workerData.ending === 'init') {
      void Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id: UniqueId.create() })
      setTimeout(() => process.exit(0), 50)
      return
    }
    const communicators = await Communicator.initAll([0, 1])
    const memory = workerData.memory.map((range) => ({ [Symbol.for('cuda.memory')]: range }))
    const sum = () => {
      for (const [rank, one] of communicators.entries()) one.allReduce(memory[rank], memory[rank], { stream: workerData.streams[rank] })
    }
    group(sum)
    if (workerData.ending === 'group') group(() => { sum(); parentPort.postMessage('summed'); process.exit(0) })
    parentPort.postMessage('summed')
    if (workerData.ending === 'destroy') for (const one of communicators) await one.destroy()
    if (workerData.ending === 'exit') process.exit(0)
  })
`

let memory: TestMemory[]
let streams: TestStream[]

beforeAll(() => {
  startSoftwareDevice()
  memory = [0, 1].map((device) => TestMemory.from(device, new Float32Array([1])))
  streams = [0, 1].map((device) => new TestStream(device))
})

afterAll(() => {
  for (const one of [...memory, ...streams]) one.dispose()
})

async function runWorker(ending: 'destroy' | 'exit' | 'leave' | 'group' | 'init'): Promise<unknown[]> {
  const ranges = memory.map((one) => ({ ...(one[Symbol.for('cuda.memory') as never] as object) }))
  const nccl = import.meta.resolve('@shoal/nccl')
  const workerData = { nccl, ending, memory: ranges, streams: streams.map(({ handle }) => handle) }
  const worker = new Worker(script, { eval: true, workerData })
  const messages: unknown[] = []
  worker.on('message', (message) => messages.push(message))
  const code = await new Promise<number>((resolve, reject) => worker.once('exit', resolve).once('error', reject))
  expect(code).toBe(0)
  return messages
}

test.each(['destroy', 'exit', 'leave', 'group', 'init'] as const)(
  'a worker with communicators may end by %s',
  async (ending) => {
    expect(await runWorker(ending)).toEqual(ending === 'init' ? [] : ['summed'])
    // This thread's own communicators are not affected.
    const communicators = await Communicator.initAll([0, 1])
    // The worker did not wait for its queued work, and a write does not wait for these streams.
    for (const stream of streams) stream.wait()
    for (const one of memory) one.write(new Float32Array([1]))
    group(() => {
      for (const [rank, one] of communicators.entries()) {
        const [buffer, stream] = [memory[rank] as TestMemory, streams[rank] as TestStream]
        one.allReduce(buffer, buffer, { stream })
      }
    })
    for (const stream of streams) stream.wait()
    for (const one of memory) expect(one.floats()).toEqual([2])
    for (const one of communicators) await one.destroy()
  },
)
