import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { number, table } from '@shoal/cli/bench'
import type { Device } from '@shoal/driver'
import { supportedArchitectures } from '@shoal/nvrtc'
import { atMost, type Bar } from '../bars.js'
import { compile, temporaryFolder } from '../compile.js'
import { aboutDevices, devicesFor, libraryPath } from '../devices.js'
import type { Delay } from '../eventLoopRanks/delay.js'
import type { Outcome, RunOptions } from '../options.js'
import { median, medianRatio } from '../statistics.js'
import { SubjectProcess } from '../subjectProcess.js'
import { takeRounds } from '../turns.js'
import { source } from './source.js'

interface Measured {
  readonly what: string
  readonly rounds: readonly number[]
  readonly median: number
}

/**
 * The time to compile a kernel of fifty lines: for the first time, from the disk cache, and from the process's cache.
 * Also measures the event loop in the meantime.
 */
export async function benchCompile(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  // The number of compilations in a loop, and the number of programs that are compiled at once.
  const [count, together] = options.device === 'sim' ? [1, 3] : [5, 20]
  const { major, minor } = device.computeCapability
  const newest = supportedArchitectures().findLast((each) => each <= 10 * major + minor)
  const architecture = `${device.isSoftware ? 'compute' : 'sm'}_${newest}`
  const nvrtc = libraryPath('nvrtc')
  // A process that looks for a cache entry finds the one of an earlier process.
  const environment = { SHOAL_CACHE_FOLDER: mkdtempSync(join(temporaryFolder(), 'cache-')), SHOAL_NVRTC_LIBRARY: nvrtc }
  const script = fileURLToPath(new URL('child.js', import.meta.url))
  const env = { ...process.env, ...environment }
  const once = (wantsModule: 0 | 1): number =>
    Number(execFileSync(process.execPath, [script, 'once', String(wantsModule)], { env, encoding: 'utf8' }))
  // NVRTC looks up its builtins library by name only.
  const words = [nvrtc, source, architecture]
  const beside = { LD_LIBRARY_PATH: dirname(nvrtc) }
  const [c] = await SubjectProcess.start('nvrtc.c', compile('nvrtc.c', ['-ldl']), words, beside)
  const [shoal] = await SubjectProcess.start('child.js', process.execPath, [script, 'serve'], environment)
  const figures = await takeRounds(
    {
      'NVRTC alone, in C': () => c.measure(`first ${count}`),
      'compile, for the first time': () => shoal.measure(`first ${count}`),
      'from disk, in a new process': () => once(0),
      'compile from disk, in a new process': () => once(1),
      'from the process': () => shoal.measure('memory 100'),
      'what the driver takes for the module': () => shoal.measure('load 20'),
    },
    options.rounds,
  )
  const delayOf = async (request: string): Promise<Delay> => JSON.parse(await shoal.request(request)) as Delay
  const [idle, delay] = [await delayOf('idle 0'), await delayOf(`together ${together}`)]
  for (const program of [c, shoal]) program.close()
  const medians = Object.entries(figures).map(([what, rounds]): Measured => ({ what, rounds, median: median(rounds) }))
  const [alone, first, disk, , memory] = medians as [Measured, Measured, Measured, Measured, Measured]
  const ratio = ({ rounds }: Measured): number => medianRatio(rounds, alone.rounds)
  console.log(
    `A kernel of 50 lines for ${architecture}, medians of ${options.rounds} rounds; compile loads the module, too\n`,
  )
  console.log(
    table(
      ['', 'µs', 'to NVRTC'],
      medians.map((each) => [each.what, number(each.median), number(ratio(each))]),
    ),
  )
  const said = ({ percentile99, longest }: Delay): string =>
    `99th percentile ${number(percentile99)} ms, longest ${number(longest)} ms`
  console.log(`\nevent loop while ${together} programs compile: ${said(delay)}; with nothing to do: ${said(idle)}`)
  const bars: Bar[] = [
    atMost('compile, for the first time, to NVRTC', ratio(first), 1.05),
    atMost('compiled before, from disk without the module, to NVRTC', ratio(disk), 0.02),
    atMost('compiled before, from the process without the module, to NVRTC', ratio(memory), 0.0005),
    atMost(`event loop while ${together} programs compile, 99th percentile`, delay.percentile99, 5, ' ms'),
  ]
  return { results: { ...aboutDevices([device], options), architecture, cases: medians, idle, delay }, bars }
}
