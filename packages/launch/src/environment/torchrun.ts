import type { ReadPlace } from './place.js'
import { numberIn, requiredNumber, textIn } from './variables.js'

const loopback = /^(?:localhost|127\..*|::1)$/

/** Reads the variables of torchrun and compatible launchers. */
export const readTorchrun: ReadPlace = (environment) => {
  const rank = numberIn(environment, 'RANK')
  const runId = textIn(environment, 'TORCHELASTIC_RUN_ID')
  if (rank === undefined || (runId === undefined && textIn(environment, 'WORLD_SIZE') === undefined)) return undefined
  const worldSize = requiredNumber(environment, 'WORLD_SIZE', 'TORCHELASTIC_RUN_ID and RANK are set')
  const localWorldSize = numberIn(environment, 'LOCAL_WORLD_SIZE')
  const firstHost = textIn(environment, 'MASTER_ADDR')
  const isLocal = firstHost === undefined || loopback.test(firstHost)
  const parts = ['MASTER_ADDR', 'MASTER_PORT', 'TORCHELASTIC_RESTART_COUNT'].map((name) => textIn(environment, name))
  return {
    launcher: 'torchrun',
    rank,
    worldSize,
    localRank: numberIn(environment, 'LOCAL_RANK'),
    localWorldSize,
    nodeRank: numberIn(environment, 'GROUP_RANK'),
    isOneMachine: localWorldSize === undefined ? isLocal : localWorldSize === worldSize,
    isGuess: localWorldSize === undefined && isLocal,
    jobId: [runId, ...parts].join(' '),
    rankVariable: 'RANK',
    firstHost,
  }
}
