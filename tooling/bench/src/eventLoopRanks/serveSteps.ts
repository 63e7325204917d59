import { serve } from '../processes/serve.js'
import { measureDelay, sleep } from './delay.js'

/**
 * Serves as one of two ranks: runs the requested step and answers with the delay of the event loop. Rank 1 starts each
 * step late.
 */
export async function serveSteps(
  rank: number,
  seconds: number,
  makeId: () => Uint8Array,
  stepsFor: (id: Uint8Array) => Readonly<Record<string, () => Promise<unknown>>>,
): Promise<void> {
  await serve({
    ...(rank === 0 ? { makeId } : {}),
    start: async (id) => {
      const steps = stepsFor(id)
      return {
        readyLine: 'ready',
        answer: async ([name = '']) => {
          const step = steps[name]
          if (step === undefined) throw new Error(`no step ${name}`)
          if (rank > 0) await sleep(seconds * 1000)
          return JSON.stringify(await measureDelay(step))
        },
      }
    },
  })
  process.exit()
}
