// One rank of `shoal run`, from its start to its first all-reduce.
import { Device } from '@shoal/driver'
import { bootstrap } from '@shoal/launch'
import { ncclVersion, UniqueId } from '@shoal/nccl'
import { prepareRank } from './work.js'

const job = await bootstrap()
const start = prepareRank(Device.get(job.deviceOrdinal))
const id = await job.share('nccl', () => UniqueId.create().toBytes())
const { init, first } = await start(job.rank, job.worldSize, id)
process.stdout.write(`ready ${ncclVersion().value} ${init} ${first}\n`)
// The others may be on their way to the first sum still.
await job.barrier('done')
await job.dispose()
process.exit()
