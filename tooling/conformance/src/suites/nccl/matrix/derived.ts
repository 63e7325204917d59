import assert from 'node:assert/strict'
import type { ConformanceCase, Suite } from '../../../suite.js'
import { ProcessGroup, range, ranksAvailable } from './processGroup.js'
import type { Derivation } from './rankGroupProcess.js'
import { has, randomLayout, sampleTrials } from './samples.js'
import { isSymmetric, type Trial } from './trial.js'

type Place = { readonly rank: number; readonly worldSize: number }

/** Has all derive a communicator; the places of the ranks afterwards, in the old order. */
async function derive(processes: ProcessGroup, derivation: Derivation): Promise<Place[]> {
  return (await processes.run<Place[]>('derive', () => derivation)).flat()
}

const split: ConformanceCase = {
  name: 'a communicator is split in two, whose ranks stand in the other order',
  requires: { ranks: 2 },
  timeout: 300_000,
  async run(t) {
    if (!has(t, 21801, 'ncclCommSplit')) return
    const worldSize = t.random.integer(2, ranksAvailable(t))
    const processes = await ProcessGroup.join(t, randomLayout(t, worldSize))
    const places = await derive(processes, { kind: 'split' })
    for (const [old, { rank, worldSize: size }] of places.entries()) {
      const alike = range(worldSize).filter((other) => other % 2 === old % 2)
      assert.deepEqual([rank, size], [alike.reverse().indexOf(old), alike.length])
    }
    // One process may have ranks of both halves, whose operations then do not wait for each other.
    await processes.try(sampleTrials(t))
    await processes.leave()
    t.note(`${worldSize} ranks`)
  },
}

const shrink: ConformanceCase = {
  name: 'a communicator goes on without some of its ranks',
  requires: { ranks: 3 },
  timeout: 300_000,
  async run(t) {
    if (!has(t, 22703, 'ncclCommShrink')) return
    const worldSize = t.random.integer(3, ranksAvailable(t))
    const exclude = [...new Set([t.random.integer(0, worldSize - 1), t.random.integer(0, worldSize - 1)])]
    const processes = await ProcessGroup.join(t, randomLayout(t, worldSize))
    const places = await derive(processes, { kind: 'shrink', exclude })
    const left = worldSize - exclude.length
    assert.deepEqual(
      places,
      range(left).map((rank) => ({ rank, worldSize: left })),
    )
    await processes.try(sampleTrials(t))
    await processes.leave()
    t.note(`${worldSize} ranks without ${exclude.join(' and ')}`)
  },
}

const grow: ConformanceCase = {
  name: 'a communicator grows by a rank of another process',
  requires: { ranks: 2 },
  timeout: 300_000,
  async run(t) {
    if (!has(t, 22902, 'ncclCommGrow')) return
    const worldSize = t.random.integer(2, ranksAvailable(t))
    const processes = await ProcessGroup.join(
      t,
      range(worldSize - 1).map((rank) => [rank]),
      1,
    )
    const id = (await processes.first.run('createGrowId')) as string
    processes.add(t, worldSize - 1)
    const answers = await processes.run<Place[]>('derive', ([rank = 0]): Derivation => {
      if (rank === worldSize - 1) return { kind: 'joinGrown', worldSize, id, rank }
      return { kind: 'grow', worldSize, id: rank === 0 ? id : undefined }
    })
    assert.deepEqual(
      answers.flat(),
      range(worldSize).map((rank) => ({ rank, worldSize })),
    )
    await processes.try(sampleTrials(t))
    await processes.leave()
    t.note(`${worldSize - 1} ranks and one`)
  },
}

/** Bytes for two buffers of the largest operation with guards. */
function arenaBytes(trials: readonly Trial[], worldSize: number): number {
  const count = Math.max(...trials.map((trial) => trial.count))
  return Math.ceil((2 * (count * worldSize + 32) * 16) / 2 ** 21) * 2 ** 21
}

function registeredCase(kind: 'window' | 'registered', since: number, name: string): ConformanceCase {
  return {
    name,
    requires: { ranks: 2 },
    timeout: 300_000,
    async run(t) {
      if (!has(t, since, kind === 'window' ? 'windows' : 'registration')) return
      const worldSize = t.random.integer(2, ranksAvailable(t))
      const processes = await ProcessGroup.join(t, randomLayout(t, worldSize))
      const trials = sampleTrials(t, kind === 'window' ? isSymmetric : undefined)
      await processes.run('open', () => ({ kind, bytes: arenaBytes(trials, worldSize) }))
      await processes.try(trials)
      await processes.leave()
      t.note(`${trials.length} operations over ${worldSize} ranks`)
    },
  }
}

const puts: ConformanceCase = {
  name: 'ranks write into each other’s windows and signal it',
  requires: { ranks: 2 },
  timeout: 300_000,
  async run(t) {
    if (!has(t, 22902, 'one-sided operations')) return
    const worldSize = t.random.integer(2, ranksAvailable(t))
    const processes = await ProcessGroup.join(t, randomLayout(t, worldSize))
    await processes.run('open', () => ({ kind: 'window', bytes: 2 ** 21 }))
    for (const failures of await processes.run<string[]>('putAround', () => 10)) assert.deepEqual(failures, [])
    await processes.leave()
  },
}

const peers: ConformanceCase = {
  name: 'ranks read each other’s windows where their devices reach them',
  requires: { ranks: 2 },
  timeout: 300_000,
  async run(t) {
    if (!has(t, 22902, 'peer pointers')) return
    const worldSize = t.random.integer(2, ranksAvailable(t))
    const processes = await ProcessGroup.join(t, [range(worldSize)])
    await processes.run('open', () => ({ kind: 'window', bytes: 2 ** 21 }))
    let count = 0
    for (const { read, failures } of await processes.run<{ read: number; failures: string[] }>('readPeers')) {
      assert.deepEqual(failures, [])
      count += read
    }
    t.note(`${count} of ${worldSize ** 2} windows are reached`)
    await processes.leave()
  },
}

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
