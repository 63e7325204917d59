import { formatNvshmemVersion, nvshmem } from '@shoal/nvshmem-sys'
import { type Bar, leastBandwidth, slowest } from '../bars.js'
import { compileWithCuda } from '../compile.js'
import { aboutDevices, devicesFor, libraryPath } from '../devices.js'
import { type Outcome, onlyOf, type RunOptions } from '../options.js'
import { chooseDevices, nodeCommand } from '../processes/commands.js'
import {
  bytesOf,
  type Comparison,
  type ComparisonPlan,
  compareInPasses,
  measureSizes,
  roundsOfPass,
} from '../processes/comparison.js'
import { describeProcessors } from '../processes/placements.js'
import type { ProcessCommand } from '../processes/processGroup.js'
import { printBandwidths, printRows, type Row } from '../turns.js'
import {
  groupNames,
  groups,
  isCollective,
  largestMessage,
  loopCountsFor,
  type Name,
  names,
  namesOf,
  sizesOf,
} from './cases.js'

const kibibyte = 2 ** 10
const mebibyte = 2 ** 20
const probeMilliseconds = 10_000
// Restricts the bootstrap to this machine.
const environment = { NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME: 'lo' }

/** Puts, gets, atomics and barriers of NVSHMEM, in C, through the raw package and through the safe package. */
export async function benchNvshmem(options: RunOptions): Promise<Outcome> {
  const devices = chooseDevices(devicesFor(options), options)
  const pes = devices.length
  if (pes < 2) throw new Error('one device: puts and gets need a second one')
  const wanted = onlyOf(options.only, groupNames)
  const library = libraryPath('nvshmem')
  const without = new Set<string>()
  const words = Array.from({ length: pes }, (_, pe) => [pe, pes, largestMessage(options)])
  const program = compileWithCuda('nvshmem.c')
  const c = words.map((each) => ({ command: program, arguments: [library, ...each], environment }))
  const node = (script: string, ...more: string[]): ProcessCommand[] =>
    words.map((each) => nodeCommand(import.meta.url, script, [...each, ...more], environment))
  const plan: ComparisonPlan<Name> = {
    C: c,
    raw: node('rawChild.js'),
    shoal: node('safeChild.js'),
    awaited: node('safeChild.js', 'awaited'),
    'C again': c,
  }
  const { rows, processors } = await compareInPasses(plan, async (comparison) => {
    const found: Row[] = []
    for (const group of wanted) {
      if (group === 'atomics' && !(await hasAtomics(comparison, without))) continue
      for (const test of groups[group]) found.push(...(await measureCase(test, comparison, options)))
    }
    return found
  })
  const version = formatNvshmemVersion(nvshmem.version ?? 0)
  console.log(`NVSHMEM ${version} (${library}), ${pes} PEs, one a process: medians of rounds, and the ratio to C`)
  console.log(`${describeProcessors(processors.map((list, pass) => [`pass ${pass + 1}`, list]))}\n`)
  printRows(rows, names)
  console.log('')
  printBandwidths(
    rows.filter((row) => /^(put|get) /.test(row.case) && bytesOf(row.case) >= mebibyte),
    (row) => bytesOf(row.case),
  )
  for (const line of without) console.log(line)
  const details = { nvshmem: version, library, without: [...without], processors }
  return { results: { ...aboutDevices(devices, options), ...details, cases: rows }, bars: barsOf(rows) }
}

/** Measures a case in all sizes. */
async function measureCase(test: string, comparison: Comparison<Name>, options: RunOptions): Promise<Row[]> {
  const measure = (name: Name, request: string): Promise<number> => {
    const group = comparison.run(name)
    return isCollective(test) ? group.measure(request) : group.measureFirst(request)
  }
  const [sizes, taking] = [sizesOf(test, largestMessage(options)), namesOf(test)]
  comparison.moveMainThreads()
  // Lets V8 compile the code.
  for (const name of taking) await measure(name, `${test} ${sizes[0]} 1 ${options.device === 'sim' ? 20 : 3000}`)
  return measureSizes({
    test,
    sizes,
    names: taking,
    countsFor: (bytes) => loopCountsFor(bytes, options),
    measure,
    rounds: roundsOfPass(options.rounds, names),
  })
}

/** Tries an atomic in C, because NVSHMEM 3.4.5 has none on the host and ends the process. */
async function hasAtomics(comparison: Comparison<Name>, without: Set<string>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${probeMilliseconds / 1000} s`)), probeMilliseconds)
  })
  try {
    await Promise.race([comparison.run('C').measureFirst('atomics-work 8 1 1'), late])
    return true
  } catch (error) {
    without.add(`without atomics, which this NVSHMEM does not do in C: ${(error as Error).message}`)
    await comparison.start('C')
    return false
  } finally {
    clearTimeout(timer)
  }
}

/** Each bar uses the worst of its sizes. */
function barsOf(rows: readonly Row[]): Bar[] {
  const those = (pattern: RegExp, fits: (bytes: number) => boolean = () => true): Row[] =>
    rows.filter((row) => pattern.test(row.case) && fits(bytesOf(row.case)))
  return [
    ...['put', 'get'].flatMap((test) => [
      ...leastBandwidth(
        `${test} on a stream from 1 MiB, bandwidth against C`,
        those(new RegExp(`^${test} `), (bytes) => bytes >= mebibyte),
        0.99,
      ),
      ...slowest(
        `${test} on a stream at most 1 KiB, latency against C`,
        those(new RegExp(`^${test}-latency `), (bytes) => bytes <= kibibyte),
        1.1,
      ),
    ]),
    ...slowest('barrier of all PEs, time against C', those(/^barrier /), 1.1),
    ...slowest('barrier on a stream, time against C', those(/^barrier-on-stream /), 1.1),
    ...slowest('host atomics, time against C', those(/^atomic-/), 1.1),
  ]
}
