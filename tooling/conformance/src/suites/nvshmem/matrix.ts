import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { dtypeInfo } from '@shoal/types'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { Child } from '../../support/child.js'
import { runsEverything } from '../../support/extent.js'
import { guard } from './pe.js'
import type { Report, Start } from './peProcess.js'
import { everyTrial, sampleOf, type Trial } from './trial.js'

const script = fileURLToPath(new URL('peProcess.js', import.meta.url))
const mostPes = 8

/** Bytes that the largest operation of some trials needs on each PE. */
function bytesFor(trials: readonly Trial[], peCount: number): number {
  const largest = Math.max(...trials.map(({ count, dtype }) => count * dtypeInfo(dtype).bytes))
  return (Math.max(largest, 4096) + 1) * Math.max(peCount, 6) + 2 * guard * 16
}

async function runTrials(t: CaseContext, worldSize: number, trials: readonly Trial[]): Promise<void> {
  const environment = t.isSoftware ? { SHOAL_SIM_DEVICES: String(worldSize) } : {}
  const pes = Array.from({ length: worldSize }, () => Child.start(t, script, { environment }))
  const all = <T>(command: string, argument?: (rank: number) => unknown): Promise<T[]> =>
    Promise.all(pes.map((child, rank) => child.run(command, argument?.(rank)) as Promise<T>))
  const id = (await pes[0]?.run('createId')) as string
  const bytes = Math.ceil(bytesFor(trials, worldSize) / 4096) * 4096
  await all('init', (rank): Start => ({ id, rank, worldSize, bytes }))
  const reports = await all<Report>('run', () => trials)
  for (const { done, wrongs, failures } of reports) {
    assert.equal(wrongs, 0, `${wrongs} wrong results, among them\n${failures.join('\n')}`)
    assert.equal(done, trials.length)
  }
  await all('finish')
  for (const child of pes) assert.deepEqual(await child.leave(), { code: 0, signal: null })
  t.note(`${trials.length} operations over ${worldSize} PEs`)
}

/** Elements of a large operation. */
function largeCount(t: CaseContext): number {
  return t.isSoftware ? 2 ** 13 : 2 ** 18
}

/** Beyond one of each operation and dtype. */
const sampleSize = 150

const everything: ConformanceCase = {
  name: 'every operation on every type, one process a PE',
  requires: { ranks: 2 },
  timeout: 1_200_000,
  async run(t) {
    const most = t.isSoftware ? mostPes : Math.min(mostPes, t.devices.length)
    const worldSizes = runsEverything(t)
      ? [...new Set([2, 3, 4, most])].filter((size) => size <= most)
      : [t.random.integer(2, 4)]
    for (const worldSize of worldSizes) {
      const trials = everyTrial(t.random, largeCount(t))
      await runTrials(t, worldSize, runsEverything(t) ? trials : sampleOf(trials, sampleSize))
    }
  },
}

const alone: ConformanceCase = {
  name: 'one PE alone',
  timeout: 600_000,
  async run(t) {
    const trials = everyTrial(t.random, largeCount(t))
    await runTrials(t, 1, runsEverything(t) ? trials : trials.slice(0, sampleSize))
  },
}

export const matrixSuite: Suite = { name: 'nvshmem matrix', cases: [everything, alone] }
