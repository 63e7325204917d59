import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { atMost, number, table } from './bars.js'
import type { Outcome, RunOptions } from './options.js'
import { median, series } from './statistics.js'

const child = fileURLToPath(new URL('importChild.js', import.meta.url))
const packages = ['@shoal/types', '@shoal/ffi', '@shoal/driver', '@shoal/nccl'] as const
const mebibyte = 2 ** 20

interface Sample {
  readonly milliseconds: number
  readonly residentBytes: number
  readonly libraries: readonly string[]
}

function sample(name?: string): Sample {
  const output = execFileSync(process.execPath, [child, ...(name === undefined ? [] : [name])], { encoding: 'utf8' })
  return JSON.parse(output) as Sample
}

/** Time, memory and libraries of an import, each in a fresh process, in turn with a bare Node. */
export async function benchImport(options: RunOptions): Promise<Outcome> {
  const { rounds } = options
  const bare: Sample[] = []
  const samples = new Map<string, Sample[]>(packages.map((name) => [name, []]))
  for (const name of packages) sample(name) // brings the files into the page cache
  for (let round = 0; round < rounds; round += 1) {
    bare.push(sample())
    for (const [name, list] of samples) list.push(sample(name))
  }
  const bareBytes = bare.map((one) => one.residentBytes)
  const results = [...samples].map(([name, list]) => ({
    package: name,
    milliseconds: series(list.map((one) => one.milliseconds)),
    mebibytesOverBareNode: series(list.map((one) => (one.residentBytes - median(bareBytes)) / mebibyte)),
    libraries: [...new Set(list.flatMap((one) => one.libraries))],
  }))
  console.log(
    `Import in a fresh process, median of ${rounds}; bare Node ${process.version} takes ${number(median(bareBytes) / mebibyte)} MiB\n`,
  )
  console.log(
    table(
      ['', 'ms', 'MiB over bare Node', 'CUDA libraries mapped'],
      results.map((row) => [
        row.package,
        number(row.milliseconds.median),
        number(row.mebibytesOverBareNode.median),
        row.libraries.length === 0 ? 'none' : row.libraries.join(' '),
      ]),
    ),
  )
  const driver = results.find((row) => row.package === '@shoal/driver')
  const bars = [
    atMost("import '@shoal/driver'", driver?.milliseconds.median ?? Number.NaN, 40, ' ms'),
    atMost(
      "import '@shoal/driver', resident memory over bare Node",
      driver?.mebibytesOverBareNode.median ?? Number.NaN,
      12,
      ' MiB',
    ),
    atMost("import '@shoal/driver', CUDA libraries mapped", driver?.libraries.length ?? Number.NaN, 0),
  ]
  return { results: { rounds, bareNodeBytes: series(bareBytes), packages: results }, bars }
}
