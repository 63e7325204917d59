/** A thread that makes sequences of its own beside those of the main thread, until it is terminated. */
import { parentPort, workerData } from 'node:worker_threads'
import { EpisodeFailure, runEpisode } from './episode.js'

const { seed } = workerData as { readonly seed: number }
for (let number = 0; ; number += 1) {
  try {
    await runEpisode({ seed: seed + number, steps: 60, beside: 'the main thread' })
  } catch (error) {
    const failure = error instanceof EpisodeFailure ? error : undefined
    parentPort?.postMessage(`in a worker, seed ${seed + number}: ${String(error)}\n${failure?.log.join('\n') ?? ''}`)
    break
  }
}
