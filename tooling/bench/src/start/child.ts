// One rank from its start to its first all-reduce, as native/firstAllReduce.c: RANK RANKS
import { Device } from '@shoal/driver'
import { ncclVersion, UniqueId } from '@shoal/nccl'
import { serve } from '../processes/serve.js'
import { prepareRank } from './work.js'

const [rank = 0, ranks = 0] = process.argv.slice(2).map(Number)
const start = prepareRank(Device.get(rank))
await serve({
  ...(rank === 0 ? { makeId: () => UniqueId.create().toBytes() } : {}),
  start: async (id) => {
    const { init, first } = await start(rank, ranks, id)
    return {
      readyLine: `ready ${ncclVersion().value} ${init} ${first}`,
      answer: () => Number.NaN,
    }
  },
})
process.exit()
