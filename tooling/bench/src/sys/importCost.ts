import { number, table } from '@shoal/cli/bench'
import { atMost } from '../bars.js'
import type { Outcome, RunOptions } from '../options.js'
import { measureImports, type Program } from './imports.js'
import { emptyPackage, measureStarts } from './starts.js'

const packages = ['@shoal/types', '@shoal/ffi', '@shoal/driver', '@shoal/nccl'] as const
const mebibyte = 2 ** 20

/** The time, memory and loaded libraries of an import, each in fresh processes, alternating with a bare Node. */
export async function benchImport({ rounds }: RunOptions): Promise<Outcome> {
  const programs = packages.map((name): Program => ({ count: '0', imports: [[name, name]] }))
  const { bareBytes, costs } = await measureImports(programs, rounds)
  const { bare, imports } = await measureStarts(packages, rounds)
  const results = [emptyPackage, ...packages].map((name, index) => {
    const importMilliseconds = imports[name]?.median ?? Number.NaN
    const { bytesOverBareNode, libraries = [] } = costs[index - 1] ?? {}
    const ofBareStart = importMilliseconds / bare.median
    return { package: name, importMilliseconds: imports[name], ofBareStart, bytesOverBareNode, libraries }
  })
  console.log(
    `What an import adds to the start of a module, median of ${rounds} rounds, each the best of some; a module that imports nothing starts and ` +
      `ends in ${number(bare.median)} ms (Node ${process.version}) and has ${number(bareBytes.median / mebibyte)} MiB\n`,
  )
  console.log(
    table(
      ['', 'ms', '× the start of bare Node', 'MiB over bare Node', 'CUDA libraries mapped'],
      results.map(({ package: name, importMilliseconds, ofBareStart, bytesOverBareNode, libraries }) => [
        name,
        number(importMilliseconds?.median ?? Number.NaN),
        number(ofBareStart),
        bytesOverBareNode === undefined ? '–' : number(bytesOverBareNode.median / mebibyte),
        libraries.length === 0 ? 'none' : libraries.join(' '),
      ]),
    ),
  )
  const driver = results.find((row) => row.package === '@shoal/driver')
  const what = "import '@shoal/driver'"
  const memory = (driver?.bytesOverBareNode?.median ?? Number.NaN) / mebibyte
  const bars = [
    atMost(what, driver?.importMilliseconds?.median ?? Number.NaN, 35, ' ms'),
    ...['driver', 'nccl'].map((name) => {
      const share = results.find((row) => row.package === `@shoal/${name}`)?.ofBareStart ?? Number.NaN
      return atMost(`import '@shoal/${name}', to the start of bare Node`, share, 0.3)
    }),
    atMost(`${what}, resident memory over bare Node`, memory, 12, ' MiB'),
    atMost(`${what}, CUDA libraries mapped`, driver?.libraries?.length ?? Number.NaN, 0),
  ]
  return { results: { rounds, bareNodeBytes: bareBytes, bareNodeStart: bare, packages: results }, bars }
}
