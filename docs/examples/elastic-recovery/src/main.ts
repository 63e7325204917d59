// One rank: `shoal run -n 3 --on-failure continue dist/main.js [--kill RANK@STEP …]`. A rank that is to be killed kills
// itself in that step, while the others wait for it.
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Device, DeviceBuffer } from '@shoal/driver'
import { bootstrap, type Job } from '@shoal/launch'
import { Communicator, UniqueId } from '@shoal/nccl'
import { advance, contribution, countWrong, decode, elements, encode, start } from './progress.js'

const steps = 10
const deaths = parseArgs({ options: { kill: { type: 'string', multiple: true } } }).values.kill ?? []
const wrongWord = deaths.find((death) => !/^\d+@\d$/.test(death))
if (wrongWord !== undefined) throw new Error(`--kill takes RANK@STEP, with a step from 0 to 9; got '${wrongWord}'`)

let job = await bootstrap()
const me = job.rank
const device = Device.get(job.deviceOrdinal)
using stream = device.createStream()
using buffer = DeviceBuffer.allocate(device, 'f64', elements)
let progress = start

for (;;) {
  try {
    await work(job)
    break
  } catch (error) {
    // NCCL may notice before the job does that a rank is gone. Where none is, it is another error.
    if (!(await firesWithin(job.lost, 10_000))) throw error
    console.log(
      `rank ${me}: ${(error as Error).name} in step ${progress.members.length}, lost ${job.lostRanks.join(', ')}`,
    )
    job = await job.survivors({ timeout: 30_000 })
  }
}

const wrong = countWrong(progress)
console.log(
  `rank ${me}: ${steps} steps, ${progress.members.map((ranks) => ranks.length).join(' ')} ranks in them, ${wrong} of ${elements} elements wrong`,
)
if (wrong > 0) process.exitCode = 1
await job.dispose()

/** All steps that are left, with the ranks of this job. */
async function work(job: Job): Promise<void> {
  // Some may have ended the step in which others were interrupted: all go on from where the furthest is.
  const all = await job.gather('progress', encode(progress))
  progress = all.map(decode).reduce((best, other) => (other.members.length > best.members.length ? other : best))
  const members = (await job.gather('members', Uint8Array.of(me))).map(([rank]) => rank as number)

  const id = UniqueId.fromBytes(await job.share('nccl', () => UniqueId.create().toBytes()))
  const { rank, worldSize, lost: signal } = job
  // With this signal a lost rank aborts the communicator, and every wait for it rejects.
  const communicator = await Communicator.initRank({ device, rank, worldSize, id, signal, timeout: 30_000 })
  try {
    await allSteps(job, communicator, members)
    await communicator.destroy()
  } catch (error) {
    await communicator.abort()
    throw error
  }
}

async function allSteps(job: Job, communicator: Communicator, members: readonly number[]): Promise<void> {
  while (progress.members.length < steps) {
    const step = progress.members.length
    buffer.copyFrom(contribution(me, step), { stream })
    if (deaths.some((death) => death.endsWith(`@${step}`))) await death(job, step)
    communicator.allReduce(buffer, buffer, { op: 'sum', stream })
    await communicator.synchronize(stream)
    progress = advance(progress, await buffer.toArray({ stream }), members)
  }
}

/** In this step a rank dies, when all have ended the one before and the others wait for it in the sum. */
async function death(job: Job, step: number): Promise<void> {
  await job.barrier(`step ${step}`)
  if (!deaths.includes(`${me}@${step}`)) return
  await sleep(100)
  process.kill(process.pid, 'SIGKILL')
}

function firesWithin(signal: AbortSignal, milliseconds: number): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(true)
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), milliseconds)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}
