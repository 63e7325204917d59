// One rank of the example's training, the counterpart of native/gpt.c: RANK RANKS
import { Device } from '@shoal/driver'
import { Trainer } from '@shoal/example-gpt/trainer'
import { Communicator, ncclVersion, UniqueId } from '@shoal/nccl'
import { serve } from '../processes/serve.js'
import { settingOf } from './setting.js'

const [rank = 0, worldSize = 1] = process.argv.slice(2).map(Number)

await serve({
  ...(rank === 0 ? { makeId: () => UniqueId.create().toBytes() } : {}),
  start: async (bytes) => {
    const device = Device.get(rank)
    const communicator = await Communicator.initRank({ device, rank, worldSize, id: UniqueId.fromBytes(bytes) })
    const { size, training, text } = settingOf(device.isSoftware)
    const trainer = await Trainer.create(device, communicator, size, training, text)
    await trainer.launchSteps(0)
    let loss = Number.NaN
    return {
      readyLine: `ready ${ncclVersion().value}`,
      answer: async ([name, count]) => {
        if (name === 'loss') return loss
        const steps = Number(count)
        const start = process.hrtime.bigint()
        await trainer.launchSteps(steps)
        const nanoseconds = process.hrtime.bigint() - start
        loss = await trainer.lastLoss()
        return Number(nanoseconds) / 1000 / steps
      },
    }
  },
})
// Communicators end with the process, so exit without waiting for them.
process.exit()
