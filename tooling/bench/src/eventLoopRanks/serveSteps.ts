import { serve } from '../ranks/serve.js'
import { sleep, watchEventLoop } from './delay.js'

/** One of two ranks, which answers the name of a step with how late its event loop was; rank 1 comes late to each. */
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
        greeting: 'ready',
        answer: async ([name = '']) => {
          const step = steps[name]
          if (step === undefined) throw new Error(`no step ${name}`)
          if (rank > 0) await sleep(seconds * 1000)
          return JSON.stringify(await watchEventLoop(step))
        },
      }
    },
  })
  process.exit()
}
