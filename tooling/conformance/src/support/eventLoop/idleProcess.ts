// An idle process that measures how late its event loop is. Other work on this machine delays every event loop this
// much.
import { answerCommands } from '../child.js'
import { type LoopDelay, startMeasuring } from './delay.js'

let end: (() => Promise<LoopDelay>) | undefined

answerCommands({
  begin: async () => {
    end = await startMeasuring()
  },
  end: () => end?.(),
})
