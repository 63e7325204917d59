import assert from 'node:assert/strict'
import type { ConformanceCase, Suite } from '../../../suite.js'
import { joinedCase, oneEach, runWithoutFailure, sampleTrials } from './joinedCase.js'
import { type ProcessGroup, range } from './processGroup.js'
import type { Derivation } from './rankGroupProcess.js'
import { isSymmetric, type Trial } from './trial.js'

type Place = { readonly rank: number; readonly worldSize: number }

/** Makes all ranks derive a communicator. Returns their new places, in the old order. */
async function derive(processes: ProcessGroup, derivation: Derivation): Promise<Place[]> {
  return (await processes.run<Place[]>('derive', () => derivation)).flat()
}

/** Returns the places of all ranks of a communicator, in rank order. */
const placesIn = (worldSize: number): Place[] => range(worldSize).map((rank) => ({ rank, worldSize }))

const split = joinedCase({
  name: 'a communicator is split in two, whose ranks stand in the other order',
  since: 21801,
  what: 'ncclCommSplit',
  async run(t, processes, worldSize) {
    const places = await derive(processes, { kind: 'split' })
    for (const [old, { rank, worldSize: size }] of places.entries()) {
      const alike = range(worldSize).filter((other) => other % 2 === old % 2)
      assert.deepEqual([rank, size], [alike.reverse().indexOf(old), alike.length])
    }
    // A process may have ranks of both halves. Operations of the halves do not wait for each other.
    await processes.try(sampleTrials(t))
    return `${worldSize} ranks`
  },
})

const shrink = joinedCase({
  name: 'a communicator goes on without some of its ranks',
  since: 22703,
  what: 'ncclCommShrink',
  ranks: 3,
  async run(t, processes, worldSize) {
    const exclude = [...new Set([t.random.integer(0, worldSize - 1), t.random.integer(0, worldSize - 1)])]
    assert.deepEqual(await derive(processes, { kind: 'shrink', exclude }), placesIn(worldSize - exclude.length))
    await processes.try(sampleTrials(t))
    return `${worldSize} ranks without ${exclude.join(' and ')}`
  },
})

const grow = joinedCase({
  name: 'a communicator grows by a rank of another process',
  since: 22902,
  what: 'ncclCommGrow',
  layout: (worldSize) => oneEach(worldSize - 1),
  async run(t, processes, worldSize) {
    const id = (await processes.first.run('createGrowId')) as string
    processes.add(t, worldSize - 1)
    const answers = await processes.run<Place[]>('derive', ([rank = 0]): Derivation => {
      if (rank === worldSize - 1) return { kind: 'joinGrown', worldSize, id, rank }
      return { kind: 'grow', worldSize, id: rank === 0 ? id : undefined }
    })
    assert.deepEqual(answers.flat(), placesIn(worldSize))
    await processes.try(sampleTrials(t))
    return `${worldSize - 1} ranks and one`
  },
})

/** The bytes for two guarded buffers of the largest operation. */
function arenaBytes(trials: readonly Trial[], worldSize: number): number {
  const count = Math.max(...trials.map((trial) => trial.count))
  return Math.ceil((2 * (count * worldSize + 32) * 16) / 2 ** 21) * 2 ** 21
}

function registeredCase(kind: 'window' | 'registered', since: number, name: string): ConformanceCase {
  return joinedCase({
    name,
    since,
    what: kind === 'window' ? 'windows' : 'registration',
    async run(t, processes, worldSize) {
      const trials = sampleTrials(t, kind === 'window' ? isSymmetric : undefined)
      await processes.run('open', () => ({ kind, bytes: arenaBytes(trials, worldSize) }))
      await processes.try(trials)
      return `${trials.length} operations over ${worldSize} ranks`
    },
  })
}

const puts = joinedCase({
  name: 'ranks write into each other’s windows and signal it',
  since: 22902,
  what: 'one-sided operations',
  async run(_, processes, worldSize) {
    await processes.run('open', () => ({ kind: 'window', bytes: 2 ** 21 }))
    await runWithoutFailure(processes, 'putAround', 10)
    return `${worldSize} ranks`
  },
})

const peers = joinedCase({
  name: 'ranks read each other’s windows where their devices reach them',
  since: 22902,
  what: 'peer pointers',
  layout: (worldSize) => [range(worldSize)],
  async run(_, processes, worldSize) {
    await processes.run('open', () => ({ kind: 'window', bytes: 2 ** 21 }))
    const answers = await processes.run<{ read: number; failures: string[] }>('readPeers')
    for (const { failures } of answers) assert.deepEqual(failures, [])
    return `${answers.reduce((sum, { read }) => sum + read, 0)} of ${worldSize ** 2} windows are reached`
  },
})

export const derivedSuite: Suite = {
  name: 'nccl derived',
  cases: [
    split,
    shrink,
    grow,
    registeredCase('window', 22703, 'collectives on memory of NCCL that is open to all ranks'),
    registeredCase('registered', 21903, 'collectives on memory that was registered'),
    puts,
    peers,
  ],
}
