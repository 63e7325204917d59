// One of two ranks: RANK SECONDS. Rank 0 waits for rank 1, which starts every step SECONDS late.
import { Device, DeviceBuffer } from '@shoal/driver'
import { Communicator, UniqueId } from '@shoal/nccl'
import { serveSteps } from './serveSteps.js'

const [rank = 0, seconds = 0] = process.argv.slice(2).map(Number)
const device = Device.get(rank)
const stream = device.createStream({ nonBlocking: true })
const buffer = DeviceBuffer.zeros(device, 'f32', 1024)
let communicator: Communicator | undefined

await serveSteps(
  rank,
  seconds,
  () => UniqueId.create().toBytes(),
  (id) => ({
    init: async () => {
      communicator = await Communicator.initRank({ device, rank, worldSize: 2, id: UniqueId.fromBytes(id) })
    },
    collective: () => {
      communicator?.allReduce(buffer, buffer, { op: 'sum', stream })
      return stream.synchronize()
    },
  }),
)
