import { number, table } from '@shoal/cli/bench'
import { atMost } from '../bars.js'
import type { Outcome, RunOptions } from '../options.js'
import { measureImports, type Program } from './imports.js'

const packages = ['@shoal/types', '@shoal/ffi', '@shoal/driver', '@shoal/nccl'] as const
const mebibyte = 2 ** 20

/** Time, memory and libraries of an import, each in a fresh process, in turn with a bare Node. */
export async function benchImport({ rounds }: RunOptions): Promise<Outcome> {
  const programs = packages.map((name): Program => ({ count: '0', imports: [[name, name]] }))
  const { bareBytes, bareStart, costs } = await measureImports(programs, rounds)
  const results = packages.map((name, index) => ({
    package: name,
    ...costs[index],
    ofBareStart: (costs[index]?.importMilliseconds.median ?? Number.NaN) / bareStart.median,
  }))
  console.log(
    `Import in a fresh process, median of ${rounds}; bare Node ${process.version} takes ${number(bareBytes.median / mebibyte)} MiB and ${number(bareStart.median)} ms\n`,
  )
  console.log(
    table(
      ['', 'ms', '× the start of bare Node', 'MiB over bare Node', 'CUDA libraries mapped'],
      results.map(({ package: name, importMilliseconds, ofBareStart, bytesOverBareNode, libraries = [] }) => [
        name,
        number(importMilliseconds?.median ?? Number.NaN),
        number(ofBareStart),
        number((bytesOverBareNode?.median ?? Number.NaN) / mebibyte),
        libraries.length === 0 ? 'none' : libraries.join(' '),
      ]),
    ),
  )
  const driver = results.find((row) => row.package === '@shoal/driver')
  const what = "import '@shoal/driver'"
  const memory = (driver?.bytesOverBareNode?.median ?? Number.NaN) / mebibyte
  const bars = [
    atMost(what, driver?.importMilliseconds?.median ?? Number.NaN, 35, ' ms'),
    atMost(`${what}, resident memory over bare Node`, memory, 12, ' MiB'),
    atMost(`${what}, CUDA libraries mapped`, driver?.libraries?.length ?? Number.NaN, 0),
  ]
  return { results: { rounds, bareNodeBytes: bareBytes, bareNodeStart: bareStart, packages: results }, bars }
}
