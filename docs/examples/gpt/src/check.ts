// Compares the first steps of a training with a reference: `shoal run -n 2 dist/check.js`. The ranks share
// the batch, so any number of ranks must compute the same. `--write FOLDER` writes down what python/reference.py
// needs to do the same steps.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Device, ShoalError } from '@shoal/driver'
import { bootstrap } from '@shoal/launch'
import { Communicator, UniqueId } from '@shoal/nccl'
import { generator, initialWeights, layoutOf, startOf, type Training } from './model.js'
import { Reference } from './reference.js'
import { Trainer } from './trainer.js'

const [steps, sequences, tolerance] = [20, 4, 1e-4]
const size = { context: 16, width: 32, heads: 2, layers: 2, vocabulary: 23 }

await using job = await bootstrap()
if (sequences % job.worldSize !== 0) throw new RangeError(`${job.worldSize} ranks cannot share ${sequences} sequences`)
const next = generator(5)
// Each character depends on the one before, so that there is something to be learnt.
let character = 0
const text = Int32Array.from({ length: 1000 }, () => {
  character = (character * 7 + Math.floor(next() * 3)) % size.vocabulary
  return character
})
const training: Training = { batch: sequences, seed: 11, rate: 3e-3, decay: 0.1, warmup: 4, until: 30 }
process.exitCode = await main().catch((error: unknown) => {
  if (!(error instanceof ShoalError)) throw error
  console.error(`gpt: ${error.message}`)
  return 2
})

async function main(): Promise<number> {
  const device = Device.get(job.deviceOrdinal)
  const id = UniqueId.fromBytes(await job.share('nccl', () => UniqueId.create().toBytes()))
  const { rank, worldSize } = job
  await using communicator = await Communicator.initRank({ device, rank, worldSize, id, signal: job.lost })
  const share = { ...training, batch: sequences / worldSize }
  const trainer = await Trainer.create(device, communicator, size, share, text)
  const losses = await trainer.train(steps)
  const state = await trainer.state()
  trainer.dispose()

  const digest = createHash('sha256').update(state).digest()
  const digests = await job.gather('weights', new Uint8Array(digest))
  const differing = digests.filter((each) => !digest.equals(each)).length
  if (rank > 0) return differing === 0 ? 0 : 1
  const weights = initialWeights(size, layoutOf(size), training.seed)
  const { values } = parseArgs({ options: { write: { type: 'string' } } })
  if (values.write !== undefined) write(values.write, weights)
  const reference = new Reference(size, training, text, weights)
  const expected = Array.from(losses, () => reference.step())
  const distance = Math.max(...expected.map((loss, index) => Math.abs(loss - (losses[index] as number))))
  console.log(`${device.name}${device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'}, ${worldSize} ranks`)
  console.log(`losses ${JSON.stringify([...losses])}`)
  console.log(`loss ${losses[0]?.toFixed(4)} → ${losses.at(-1)?.toFixed(4)} in ${steps} steps`)
  console.log(`weights of ${differing} ranks differ from those of rank 0`)
  console.log(`largest distance to the reference in double precision: ${distance.toExponential(1)}`)
  return differing === 0 && distance < tolerance ? 0 : 1
}

function write(folder: string, weights: Float32Array): void {
  const { seed } = training
  const starts = Array.from({ length: steps }, (_, step) =>
    Array.from({ length: sequences }, (_, sequence) => startOf(sequence, step, seed, text.length, size.context)),
  )
  const facts = { size, training, weights: layoutOf(size).all, text: [...text], starts }
  writeFileSync(join(folder, 'model.json'), JSON.stringify(facts))
  writeFileSync(join(folder, 'model.bin'), weights)
}
