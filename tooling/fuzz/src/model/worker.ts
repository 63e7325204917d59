/** A thread that runs its own sequences while the main thread runs others, until it is terminated. */
import { parentPort, workerData } from 'node:worker_threads'
import { runSequence, SequenceFailure } from './sequence.js'

const { seed } = workerData as { readonly seed: number }
for (let number = 0; ; number += 1) {
  try {
    await runSequence({ seed: seed + number, steps: 60, beside: 'the main thread' })
  } catch (error) {
    const failure = error instanceof SequenceFailure ? error : undefined
    parentPort?.postMessage(`in a worker, seed ${seed + number}: ${String(error)}\n${failure?.log.join('\n') ?? ''}`)
    break
  }
}
