// One rank of a case. All ranks go to the stage of the plan. There `endedRank` dies, and the other ranks report the
// error that they get.
import { existsSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DescriptorServer, DescriptorSocket, Device, DeviceBuffer } from '@shoal/driver'
import { bootstrap, type Job } from '@shoal/launch'
import { Communicator, UniqueId } from '@shoal/nccl'
import { UniqueId as NvshmemId, Session } from '@shoal/nvshmem'
import type { Line, Task } from './plan.js'

const task = JSON.parse(process.argv[2] ?? '') as Task
const { endedRank, way, stage, limit: timeout, delay } = task
const rank = Number(process.env['RANK'] ?? process.env['SLURM_PROCID'])
const isEndedRank = rank === endedRank

function say(line: Omit<Line, 'rank'>): void {
  writeSync(1, `${JSON.stringify({ rank, ...line })}\n`)
}

async function die(): Promise<never> {
  await sleep(delay)
  say({ faultAt: Date.now() })
  if (way === 'exit') process.exit(0)
  if (way === 'throw')
    setImmediate(() => {
      throw new Error('on purpose')
    })
  else process.kill(process.pid, way === 'kill' ? 'SIGKILL' : 'SIGSTOP')
  return await new Promise(() => setInterval(() => undefined, 1000))
}

say({ pid: process.pid })
let since = Date.now()
let lostAt: number | undefined
let stall = 0
let lastTick = Date.now()
const ticker = setInterval(() => {
  stall = Math.max(stall, Date.now() - lastTick - 10)
  lastTick = Date.now()
}, 10)
ticker.unref()
let job: Job | undefined

async function join(): Promise<Job> {
  if (isEndedRank && stage === 'bootstrap') await die()
  const joined = await bootstrap(stage === 'bootstrap' ? { timeout } : undefined)
  joined.lost.addEventListener('abort', () => {
    lostAt = Date.now()
  })
  return joined
}

/** Waits until all ranks are ready. After that, `endedRank` dies. */
async function ready(among: Job): Promise<void> {
  await among.barrier('ready')
  if (isEndedRank) await die()
  since = Date.now()
  stall = 0
  lastTick = since
}

async function communicatorOf(among: Job, limits: { timeout?: number } = {}): Promise<Communicator> {
  const id = UniqueId.fromBytes(await among.share('nccl', () => UniqueId.create().toBytes()))
  if (stage === 'initRank') await ready(among)
  const { worldSize, lost: signal } = among
  const device = Device.get(among.deviceOrdinal)
  return await Communicator.initRank({ device, rank, worldSize, id, signal, ...limits })
}

async function collective(among: Job): Promise<void> {
  const communicator = await communicatorOf(among)
  const device = Device.get(among.deviceOrdinal)
  const stream = device.createStream()
  const [from, to] = [DeviceBuffer.allocate(device, 'f32', 1000), DeviceBuffer.allocate(device, 'f32', 1000)]
  communicator.allReduce(from, to, { op: 'sum', stream })
  await communicator.synchronize(stream)
  await ready(among)
  if (stage === 'allReduce') communicator.allReduce(from, to, { op: 'sum', stream })
  else communicator.recv(to, { peer: endedRank, stream })
  await communicator.synchronize(stream, { timeout })
}

async function descriptors(among: Job): Promise<void> {
  const path = `\0${task.socket}`
  const signal = among.lost
  if (!isEndedRank) {
    await among.barrier('listening')
    const socket = DescriptorSocket.connect(path)
    await socket.receive()
    await ready(among)
    await socket.receive({ signal, timeout })
    return
  }
  const server = DescriptorServer.listen(path)
  await among.barrier('listening')
  const sockets: DescriptorSocket[] = []
  while (sockets.length < among.worldSize - 1) sockets.push(await server.accept())
  for (const socket of sockets) await socket.send({ bytes: Uint8Array.of(1) })
  await ready(among)
}

async function pe(among: Job): Promise<void> {
  const id = NvshmemId.fromBytes(await among.share('nvshmem', () => NvshmemId.create().toBytes()))
  const { worldSize, lost: signal } = among
  const session = await Session.init({ device: Device.get(among.deviceOrdinal), rank, worldSize, id, signal })
  await session.barrierAll()
  await ready(among)
  await session.barrierAll({ timeout })
}

const nothing = new Uint8Array(0)

/** Runs the operation that the ranks wait for. */
async function work(): Promise<void> {
  job = await join()
  const { lost: signal } = job
  if (stage === 'allReduce' || stage === 'sendReceive') await collective(job)
  else if (stage === 'initRank') await communicatorOf(job, { timeout })
  else if (stage === 'descriptor') await descriptors(job)
  else if (stage === 'nvshmem') await pe(job)
  else {
    await ready(job)
    if (stage === 'barrier') await job.barrier('never', { timeout })
    else if (stage === 'gather') await job.gather('never', nothing, { timeout })
    else if (stage === 'share') await job.share('never', () => nothing, { root: endedRank, timeout })
    else await job.get('never', { timeout, signal })
  }
}

try {
  await work()
  say({ unexpected: `${stage} ended well` })
} catch (error) {
  const at = Date.now()
  stall = Math.max(stall, at - lastTick - 10)
  const { code, message, missing, ranks } = error as {
    code: string
    message: string
    missing?: number[]
    ranks?: number[]
  }
  // `job.lost` may fire after the error. For a stopped rank it does not fire.
  const end = Date.now() + 5000
  while (way !== 'stop' && job !== undefined && lostAt === undefined && Date.now() < end) await sleep(5)
  const named = ranks ?? missing ?? []
  say({ since, at, stall, code, message, ranks: named, lostAt, lostRanks: job?.lostRanks ?? [] })
}
while (!existsSync(task.done)) await sleep(20)
await job?.dispose()
// Running work of an aborted communicator or a stuck session must not keep the process alive.
process.exit(0)
