// One rank: `shoal run -n 4 dist/main.js`. Alone (`node dist/main.js`) it is a job of one.
import { Device, DeviceBuffer } from '@shoal/driver'
import { bootstrap } from '@shoal/launch'
import { Communicator, UniqueId } from '@shoal/nccl'
import { Network } from './network.js'
import { descend, gradientSums, initialParameters, makeExamples, partOf } from './reference.js'

const [steps, examples, rate] = [200, 1003, 0.1]
const seed = 20

await using job = await bootstrap()
const device = Device.get(job.deviceOrdinal)
const id = UniqueId.fromBytes(await job.share('nccl', () => UniqueId.create().toBytes()))
await using communicator = await Communicator.initRank({
  device,
  rank: job.rank,
  worldSize: job.worldSize,
  id,
  // A rank that dies must not keep the others waiting.
  signal: job.lost,
})
using stream = device.createStream()
const all = makeExamples(examples, seed)
using network = await Network.create(device, initialParameters(seed), partOf(all, job.rank, job.worldSize))
using losses = DeviceBuffer.zeros(device, 'f64', steps)
for (let step = 0; step < steps; step += 1) {
  network.computeGradient(stream)
  communicator.allReduce(network.sums, network.sums, { op: 'sum', stream })
  network.descend(stream, losses, step, examples, rate)
  // Not the stream alone: NCCL lets the stream go on when a rank was lost.
  await communicator.synchronize(stream)
}
const parameters = await network.parameters.toArray({ stream })

// All ranks must have the same parameters, bit for bit, because all added the same sums.
const everyone = await job.gather('parameters', new Uint8Array(parameters.buffer))
const own = Buffer.from(parameters.buffer)
const differing = everyone.filter((bytes) => !own.equals(bytes)).length

if (job.rank === 0) {
  const alone = trainAlone()
  const [first = Number.NaN, ...others] = await losses.toArray({ stream })
  const last = others.at(-1) ?? Number.NaN
  const distance = Math.max(...parameters.map((value, index) => Math.abs(value - (alone[index] as number))))
  console.log(`${device.name}${device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'}, ${job.worldSize} ranks`)
  console.log(`loss ${first.toFixed(4)} → ${last.toFixed(4)} in ${steps} steps over ${examples} examples`)
  console.log(`parameters of ${differing} ranks differ from those of rank 0`)
  // Kernels and ranks add in another order than one process does: their sums differ in the last digits.
  console.log(`largest distance to training in one process: ${distance.toExponential(1)}`)
  if (!(distance < 1e-9) || !(last < first / 2)) process.exitCode = 1
}
if (differing > 0) process.exitCode = 1

function trainAlone(): Float64Array {
  const reference = initialParameters(seed)
  for (let step = 0; step < steps; step += 1) {
    descend(reference, gradientSums(reference, all), examples, rate)
  }
  return reference
}
