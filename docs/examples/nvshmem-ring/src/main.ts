// One PE: `shoal run -n 3 dist/main.js`. Every PE has a block, and passes blocks around the ring until all PEs have all
// of them.
import { startPe } from './start.js'

const elements = 10_007
const { job, device, session } = await startPe()
const { pe, peCount } = session
const [right, left] = [(pe + 1) % peCount, (pe - 1 + peCount) % peCount]

const expected = (owner: number, index: number): number => owner * 1_000_000 + index

using stream = device.createStream()
// Symmetric: every PE has it, and names its own to mean the same place in another's.
const blocks = await session.allocate('f64', peCount * elements)
const arrived = await session.allocate('u64', peCount, { zeroed: true })

const block = (owner: number) => blocks.slice(owner * elements, (owner + 1) * elements)
await block(pe).copyFrom(Float64Array.from({ length: elements }, (_, index) => expected(pe, index)))
await session.barrierAll()

// All of it is queued at once: the streams of the PEs wait for each other's signals, JavaScript for none of them.
for (let step = 0; step < peCount - 1; step += 1) {
  const sent = (pe - step + peCount) % peCount
  const received = (left - step + peCount) % peCount
  const options = { pe: right, signal: arrived, signalIndex: sent, value: 1n, stream }
  await session.putSignalOnStream(block(sent), block(sent), options)
  await session.signals.waitForSignalOnStream(arrived, { comparison: '==', value: 1n, index: received, stream })
}
await stream.synchronize()

const result = await blocks.toArray()
const wrong = result.filter((value, index) => value !== expected(Math.floor(index / elements), index % elements)).length
console.log(`PE ${pe}: ${result.length} elements around the ring, ${wrong} wrong`)
if (wrong > 0) process.exitCode = 1

await arrived.dispose()
await blocks.dispose()
await session.finalize()
await job.dispose()
