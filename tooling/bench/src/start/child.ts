// One rank from its start to its first all-reduce, the counterpart of native/firstAllReduce.c: RANK RANKS, or no
// arguments as a rank of shoal run.
import { Device, DeviceBuffer } from '@shoal/driver'
import { bootstrap } from '@shoal/launch'
import { Communicator, ncclVersion, UniqueId } from '@shoal/nccl'
import { serve } from '../processes/serve.js'

const words = process.argv.slice(2).map(Number)
if (words.length === 2) {
  const [rank, worldSize] = words as [number, number]
  const start = prepareRank(rank)
  await serve({
    ...(rank === 0 ? { makeId: () => UniqueId.create().toBytes() } : {}),
    start: async (id) => ({ readyLine: await start(rank, worldSize, id), answer: () => Number.NaN }),
  })
} else {
  const job = await bootstrap()
  const start = prepareRank(job.deviceOrdinal)
  const id = await job.share('nccl', () => UniqueId.create().toBytes())
  process.stdout.write(`${await start(job.rank, job.worldSize, id)}\n`)
  // Wait, because other ranks may not have their first sum yet.
  await job.barrier('done')
  await job.dispose()
}
process.exit()

/**
 * Does everything that needs no other rank. The returned function does the rest and returns the line `ready VERSION
 * INIT FIRST`: the microseconds of `Communicator.initRank`, and of the first all-reduce including its wait.
 */
function prepareRank(ordinal: number): (rank: number, worldSize: number, id: Uint8Array) => Promise<string> {
  const device = Device.get(ordinal)
  const stream = device.createStream({ nonBlocking: true })
  const buffer = DeviceBuffer.zeros(device, 'f32', 256)
  return async (rank, worldSize, id) => {
    const begin = performance.now()
    const communicator = await Communicator.initRank({ device, rank, worldSize, id: UniqueId.fromBytes(id) })
    const made = performance.now()
    communicator.allReduce(buffer, buffer, { op: 'sum', stream })
    await stream.synchronize()
    const done = performance.now()
    return `ready ${ncclVersion().value} ${(made - begin) * 1000} ${(done - made) * 1000}`
  }
}
