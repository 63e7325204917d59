// One rank: `shoal run -n 2 dist/main.js`. Alone (`node dist/main.js`) it is a job of one.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Device, ShoalError } from '@shoal/driver'
import { bootstrap } from '@shoal/launch'
import { Communicator, UniqueId } from '@shoal/nccl'
import { lossChart, progressLine } from './chart.js'
import { type Checkpoint, readCheckpoint, writeCheckpoint } from './checkpoint.js'
import { layoutOf } from './model.js'
import { readOptions, usage } from './options.js'
import { charactersOf, defaultFiles, encode, readText, sample } from './text.js'
import { Trainer } from './trainer.js'

await using job = await bootstrap()
process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  // Wrong options, files or machines throw an error with a code or one of these classes. Any other error is a fault of
  // this program.
  const isForUser = error instanceof ShoalError || error instanceof RangeError
  if (!(error instanceof Error) || !(isForUser || 'code' in error)) throw error
  console.error(`gpt: ${error.message}`)
  return 2
})

async function main(words: readonly string[]): Promise<number> {
  if (words.includes('--help')) {
    if (job.rank === 0) console.log(usage)
    return 0
  }
  const device = Device.get(job.deviceOrdinal)
  const options = readOptions(words, device.isSoftware)
  const file = join(options.out, 'checkpoint.bin')
  const before = options.resume ? readCheckpoint(file) : undefined
  const text = readText(options.text.length > 0 ? options.text : defaultFiles())
  const characters = before?.characters ?? charactersOf(text)
  const size = before?.size ?? { ...options.size, vocabulary: characters.length }
  const training = trainingOf(options.training, before)

  const { rank, worldSize } = job
  const id = UniqueId.fromBytes(await job.share('nccl', () => UniqueId.create().toBytes()))
  // A rank that dies must not keep the others waiting.
  await using communicator = await Communicator.initRank({ device, rank, worldSize, id, signal: job.lost })
  const trainer = await Trainer.create(device, communicator, size, training, encode(text, characters))
  try {
    if (before !== undefined) await trainer.restore(before.state)
    if (rank === 0) {
      const kind = device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'
      console.log(`${worldSize} × ${device.name}${kind}, ${layoutOf(size).count} weights, ${text.length} characters`)
    }
    const losses = [...(before?.losses ?? [])]
    while (trainer.done < options.steps) {
      const [count, started] = [Math.min(options.every, options.steps - trainer.done), performance.now()]
      losses.push(...(await trainer.train(count)))
      if (rank > 0) continue
      const perSecond = (count / (performance.now() - started)) * 1000
      show(
        progressLine(trainer.done, options.steps, losses.at(-1) as number, perSecond),
        trainer.done === options.steps,
      )
      const all = { ...training, batch: training.batch * worldSize }
      mkdirSync(options.out, { recursive: true })
      writeCheckpoint(file, { size, training: all, characters, losses, state: await trainer.state() })
      writeFileSync(join(options.out, 'loss.svg'), lossChart(losses))
    }
    if (rank === 0 && options.sample > 0) {
      const { prompt, seed, temperature } = options
      process.stdout.write(prompt)
      const written = sample(prompt, options.sample, { characters, seed, temperature }, (tokens) =>
        trainer.logits(tokens),
      )
      for await (const character of written) process.stdout.write(character)
      process.stdout.write('\n')
    }
    return 0
  } finally {
    trainer.dispose()
  }
}

/** A checkpoint's, with its batch shared among the ranks that there are now. */
function trainingOf(wanted: Checkpoint['training'], before: Checkpoint | undefined): Checkpoint['training'] {
  if (before === undefined) return wanted
  const batch = before.training.batch / job.worldSize
  if (!Number.isInteger(batch)) {
    throw new RangeError(`${job.worldSize} ranks cannot share the ${before.training.batch} sequences of the checkpoint`)
  }
  return { ...before.training, batch }
}

/** On a terminal the line is written over. */
function show(line: string, isLast: boolean): void {
  process.stdout.write(process.stdout.isTTY && !isLast ? `${line}\r` : `${line}\n`)
}
