import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { ncclVersion } from '@shoal/nccl'
import type { CaseContext } from '../../../suite.js'
import { Child } from '../../../support/child.js'
import { runsEverything } from '../../../support/extent.js'
import type { RankGroup, TrialReport } from './rankGroupProcess.js'
import { isReduction, type Trial } from './trial.js'

const script = fileURLToPath(new URL('rankGroupProcess.js', import.meta.url))
const mostRanks = 8

/** Returns the greatest number of ranks. Each has a device, and the software device creates as many as needed. */
export function ranksAvailable(t: CaseContext): number {
  return t.isSoftware ? mostRanks : Math.min(mostRanks, t.devices.length)
}

/** Elements of a large operation. In a full run they need several chunks and every protocol. */
export function largeCount(t: CaseContext): number {
  if (!t.isSoftware) return 2 ** 17
  return runsEverything(t) ? 2 ** 16 : 2 ** 13
}

/** Is true if this NCCL supports the trial. */
export function isSupported({ collective, dtype }: Trial): boolean {
  const { value } = ncclVersion()
  if ((collective === 'gather' || collective === 'scatter' || collective === 'allToAll') && value < 22803) return false
  return !(isReduction(collective) && (dtype === 'f8e4m3' || dtype === 'f8e5m2') && value < 22403)
}

/** Processes that share the ranks of a communicator. */
export class ProcessGroup {
  readonly #t: CaseContext
  readonly #processes: { readonly ranks: readonly number[]; readonly child: Child }[]

  private constructor(t: CaseContext, processes: ProcessGroup['all']) {
    this.#t = t
    this.#processes = [...processes]
  }

  /** Starts a process for each part of the layout. */
  static start(t: CaseContext, layout: readonly (readonly number[])[], spare = 0): ProcessGroup {
    const devices = layout.flat().length + spare
    return new ProcessGroup(
      t,
      layout.map((ranks) => ({ ranks, child: startChild(t, devices) })),
    )
  }

  /** Starts a process for each part of the layout, and joins all of them to one communicator. */
  static async join(
    t: CaseContext,
    layout: readonly (readonly number[])[],
    spare = 0,
    blocking?: boolean,
  ): Promise<ProcessGroup> {
    const worldSize = layout.flat().length
    const processes = ProcessGroup.start(t, layout, spare)
    const id = layout.length === 1 ? undefined : ((await processes.first.run('createId')) as string)
    await processes.run('join', (ranks): RankGroup => ({ worldSize, ranks, id, blocking }))
    return processes
  }

  get all(): readonly { readonly ranks: readonly number[]; readonly child: Child }[] {
    return this.#processes
  }

  get first(): Child {
    const [first] = this.#processes
    if (first === undefined) throw new RangeError('there is no process')
    return first.child
  }

  /** Adds a process that will become another rank. */
  add(t: CaseContext, rank: number): Child {
    const child = startChild(t, rank + 1)
    this.#processes.push({ ranks: [rank], child })
    return child
  }

  /** Makes every process run a command. Returns all answers. */
  run<T>(command: string, argument?: (ranks: readonly number[]) => unknown): Promise<T[]> {
    const answers = this.#processes.map(({ child, ranks }) => child.run(command, argument?.(ranks)) as Promise<T>)
    return Promise.all(answers)
  }

  /** Runs the trials in every process. Every result must be right. */
  async try(trials: readonly Trial[]): Promise<void> {
    const reports = await this.run<TrialReport>('run', () => trials)
    for (const { done, wrongCount, failures } of reports) {
      assert.equal(wrongCount, 0, `${wrongCount} wrong results, among them\n${failures.join('\n')}`)
      assert.equal(done, trials.length)
    }
    for (const [reason, count] of Object.entries(reports[0]?.leftOut ?? {}))
      this.#t.note(`left out ${count}: ${reason}`)
  }

  async leave(): Promise<void> {
    await this.run('leave')
    for (const { child } of this.#processes) assert.deepEqual(await child.leave(), { code: 0, signal: null })
  }
}

function startChild(t: CaseContext, devices: number): Child {
  const environment = t.isSoftware ? { SHOAL_SIM_DEVICES: String(Math.max(devices, 2)) } : {}
  return Child.start(t, script, { environment })
}

export function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index)
}
