import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { dtypeInfo } from '@shoal/types'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { Child } from '../../support/child.js'
import { runsEverything } from '../../support/extent.js'
import { guard } from './pe.js'
import type { Report, Start } from './peProcess.js'
import { type RawTrial, rawTrials } from './raw.js'
import { everyTrial, sampleOf, type Trial } from './trial.js'

const script = fileURLToPath(new URL('peProcess.js', import.meta.url))
const mostPes = 8

function wholePages(bytes: number): number {
  return Math.ceil(bytes / 4096) * 4096
}

/** Returns the bytes that the largest of some trials needs on each PE. */
function bytesFor(trials: readonly Trial[], peCount: number): number {
  const largest = Math.max(...trials.map(({ count, dtype }) => count * dtypeInfo(dtype).bytes))
  return wholePages((Math.max(largest, 4096) + 1) * Math.max(peCount, 6) + 2 * guard * 16)
}

export function startPes(t: CaseContext, worldSize: number): Child[] {
  const environment = t.isSoftware ? { SHOAL_SIM_DEVICES: String(worldSize) } : {}
  return Array.from({ length: worldSize }, () => Child.start(t, script, { environment }))
}

/** Makes every PE run a command, each in a separate process. Returns all answers. */
async function onEveryPe<T>(
  t: CaseContext,
  worldSize: number,
  bytes: number,
  command: string,
  argument: unknown,
): Promise<T[]> {
  const pes = startPes(t, worldSize)
  const all = <T>(command: string, argument?: (rank: number) => unknown): Promise<T[]> =>
    Promise.all(pes.map((child, rank) => child.run(command, argument?.(rank)) as Promise<T>))
  const id = (await pes[0]?.run('createId')) as string
  await all('init', (rank): Start => ({ id, rank, worldSize, bytes }))
  const answers = await all<T>(command, () => argument)
  await all('finish')
  for (const child of pes) assert.deepEqual(await child.leave(), { code: 0, signal: null })
  return answers
}

async function runTrials(
  t: CaseContext,
  worldSize: number,
  trials: readonly (Trial | RawTrial)[],
  bytes: number,
): Promise<void> {
  const reports = await onEveryPe<Report>(t, worldSize, bytes, 'run', trials)
  const wrongs = reports.reduce((sum, report) => sum + report.wrongs, 0)
  const failures = reports.flatMap((report) => report.failures)
  assert.equal(wrongs, 0, `${wrongs} wrong results over ${worldSize} PEs, among them\n${failures.join('\n')}`)
  for (const { done } of reports) assert.equal(done, trials.length)
  t.note(`${trials.length} operations over ${worldSize} PEs`)
}

/** Elements of a large operation. */
function largeCount(t: CaseContext): number {
  return t.isSoftware ? 2 ** 13 : 2 ** 18
}

/** The number of random trials in addition to one of each operation and dtype. */
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
      const chosen = runsEverything(t) ? trials : sampleOf(trials, sampleSize)
      await runTrials(t, worldSize, chosen, bytesFor(chosen, worldSize))
    }
  },
}

const alone: ConformanceCase = {
  name: 'one PE alone',
  timeout: 600_000,
  async run(t) {
    const trials = everyTrial(t.random, largeCount(t))
    const chosen = runsEverything(t) ? trials : trials.slice(0, sampleSize)
    await runTrials(t, 1, chosen, bytesFor(chosen, 1))
  },
}

const byName: ConformanceCase = {
  name: 'every function of the library that there is one of for each type, called as C calls it',
  requires: { ranks: 2 },
  timeout: 600_000,
  async run(t) {
    const worldSize = t.isSoftware ? t.random.integer(2, 4) : Math.min(mostPes, t.devices.length)
    const all = rawTrials(t.random)
    // NVSHMEM 3.4.5 exports the atomics, but they only print that they are not implemented.
    const trials = t.isSoftware ? all : all.filter(({ name }) => !name.includes('_atomic_'))
    if (trials.length < all.length)
      t.note(`without ${all.length - trials.length} atomics, which the library only exports`)
    const longest = 403 * 16 * 5
    await runTrials(t, worldSize, trials, wholePages(longest * worldSize))
  },
}

/** World sizes for a short case. */
function someWorldSizes(t: CaseContext): readonly number[] {
  const most = t.isSoftware ? mostPes : Math.min(mostPes, t.devices.length)
  return t.isSoftware ? [1, t.random.integer(2, 4), t.random.integer(5, most)] : [1, most]
}

function jointCase(command: string, name: string): ConformanceCase {
  return {
    name,
    timeout: 120_000,
    async run(t) {
      for (const worldSize of someWorldSizes(t)) {
        await onEveryPe(t, worldSize, wholePages(64 * 1024), 'together', { name: command, seed: t.random.word() })
        t.note(`${worldSize} PEs`)
      }
    },
  }
}

export const teamSuite: Suite = {
  name: 'nvshmem together',
  cases: [
    jointCase('barriers', 'nobody leaves a barrier before the last has come, and what was put has arrived'),
    jointCase(
      'teams',
      'teams in steps and in two dimensions: who is in them, by what number, and that they keep apart',
    ),
    jointCase('ordering', 'what is put before a fence is there when what is put after it is'),
    jointCase('memory', 'registered memory, memory of peers by address, a buffer that grows, a team by id'),
    jointCase('mapped', 'physical memory of the program becomes symmetric, and is its own again'),
  ],
}

export const matrixSuite: Suite = { name: 'nvshmem matrix', cases: [everything, alone, byName] }
