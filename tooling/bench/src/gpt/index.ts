import { number } from '@shoal/cli/bench'
import { ncclVersion } from '@shoal/nccl'
import { atLeast, atMost, type Bar } from '../bars.js'
import { compileWithCuda } from '../compile.js'
import { aboutDevices, devicesFor, libraryPath } from '../devices.js'
import type { Outcome, RunOptions } from '../options.js'
import { nodeCommand } from '../processes/commands.js'
import { Comparison } from '../processes/comparison.js'
import { printRows, type Row, ratioBetween, takeTurns } from '../turns.js'
import { record } from './record.js'
import { settingOf } from './setting.js'

const names = ['C', 'shoal', 'C again'] as const

/**
 * Steps per second of the example `gpt`, on one device and on two. C and TypeScript use the same kernels, launches and
 * graph.
 */
export async function benchGpt(options: RunOptions): Promise<Outcome> {
  const all = devicesFor(options)
  const devices = all.slice(0, options.devices ?? Math.min(2, all.length))
  const [device] = devices
  if (device === undefined) throw new Error('--devices must be at least 1')
  const rows: Row[] = []
  const losses: Record<string, Record<string, number>> = {}
  for (const ranks of new Set([1, devices.length])) {
    const { lists, memory, code } = await record(device, ranks)
    const compiled = compileWithCuda('gpt.c')
    const c = lists.map((list, rank) => ({
      command: compiled,
      arguments: [libraryPath('nccl'), rank, ranks, list, memory, code],
    }))
    const shoal = lists.map((_, rank) => nodeCommand(import.meta.url, 'child.js', [rank, ranks]))
    const comparison = new Comparison({ C: c, shoal, 'C again': c })
    try {
      for (const name of names) await comparison.start(name)
      rows.push(...(await measure(comparison, ranks, options)))
      const said: [string, number][] = []
      for (const name of names) said.push([name, await comparison.run(name).measure('loss')])
      losses[ranks] = Object.fromEntries(said)
    } finally {
      await comparison.end()
    }
  }
  const { size, training } = settingOf(device.isSoftware)
  console.log(
    `One step of the example gpt, ${training.batch} sequences of ${size.context} characters a device: medians of rounds\n`,
  )
  printRows(rows, names)
  for (const [ranks, ofRank] of Object.entries(losses)) {
    console.log(
      `loss at the end, ${ranks} ranks: ${names.map((name) => `${name} ${number(ofRank[name] ?? 0)}`).join(', ')}`,
    )
  }
  const details = { nccl: ncclVersion().toString(), size, training, losses }
  return {
    results: { ...aboutDevices(devices, options), ...details, cases: rows },
    bars: [...barsOf(rows), sameWork(losses)],
  }
}

/** Equal steps must lead to equal losses. */
function sameWork(losses: Readonly<Record<string, Readonly<Record<string, number>>>>): Bar {
  const apart = Object.values(losses).map((each) => Math.max(...Object.values(each)) - Math.min(...Object.values(each)))
  return atMost('gpt, losses of C and Shoal apart', Math.max(...apart), 1e-6)
}

async function measure(
  comparison: Comparison<(typeof names)[number]>,
  ranks: number,
  options: RunOptions,
): Promise<Row[]> {
  const test = `${ranks} ranks`
  const count = options.device === 'sim' ? 2 : 25
  const subjects = names.map((name) => ({
    name,
    cases: [test],
    measure: (_: string, steps: number) => comparison.run(name).measure(`steps ${steps}`),
  }))
  const cases = { [test]: { title: `a step, ${ranks} ${ranks === 1 ? 'rank' : 'ranks'}`, unit: 'µs', count, loops: 1 } }
  return takeTurns(cases, subjects, options.rounds, { beforeRound: () => comparison.moveMainThreads() })
}

function barsOf(rows: readonly Row[]): Bar[] {
  const [one, two] = rows
  const bars = rows.map((row) => {
    const figure = { value: 1 / ratioBetween(row, 'shoal', 'C'), ofCAgain: 1 / ratioBetween(row, 'C again', 'C') }
    return atLeast(`gpt, steps a second of ${row.case} against C`, figure, 0.98)
  })
  if (one === undefined || two === undefined) return bars
  const [alone = Number.NaN, together = Number.NaN] = [one, two].map((row) => row.subjects['shoal']?.median)
  return [...bars, atLeast('gpt, sequences a second on two devices to those on one', (2 * alone) / together, 1.85)]
}
