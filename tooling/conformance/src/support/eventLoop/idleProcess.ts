// Does nothing, and says how late its event loop was meanwhile: as late as this machine makes any.
import { answerCommands } from '../child.js'
import { type LoopDelay, startMeasuring } from './delay.js'

let end: (() => Promise<LoopDelay>) | undefined

answerCommands({
  begin: async () => {
    end = await startMeasuring()
  },
  end: () => end?.(),
})
