// One of two ranks: RANK SECONDS. Rank 0 waits for rank 1, which comes SECONDS late to everything.
import { Device, DeviceBuffer } from '@shoal/driver'
import { Communicator, ncclVersion, UniqueId } from '@shoal/nccl'
import { serve } from '../ranks/serve.js'
import { sleep, watchEventLoop } from './delay.js'

const [rank = 0, seconds = 0] = process.argv.slice(2).map(Number)
const worldSize = 2
const device = Device.get(rank)
const stream = device.createStream({ nonBlocking: true })
const buffer = DeviceBuffer.zeros(device, 'f32', 1024)

await serve({
  ...(rank === 0 ? { makeId: () => UniqueId.create().toBytes() } : {}),
  start: async (bytes) => {
    const id = UniqueId.fromBytes(bytes)
    let communicator: Communicator | undefined
    const steps: Record<string, () => Promise<unknown>> = {
      init: async () => {
        communicator = await Communicator.initRank({ device, rank, worldSize, id })
      },
      collective: () => {
        communicator?.allReduce(buffer, buffer, { op: 'sum', stream })
        return stream.synchronize()
      },
    }
    return {
      greeting: `ready ${ncclVersion()}`,
      answer: async ([name = '']) => {
        const step = steps[name]
        if (step === undefined) throw new Error(`no step ${name}`)
        if (rank > 0) await sleep(seconds * 1000)
        return JSON.stringify(await watchEventLoop(step))
      },
    }
  },
})
process.exit()
