import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { compileLibrary } from '../src/proof/compile.js'
import type { Report } from '../src/proof/job.js'
import { emitRecorder } from '../src/proof/recorder.js'
import { earlierLibrary, emptyLibrary, laterLibrary } from '../src/proof/versions.js'
import type { FunctionSpec, LibrarySpecFile } from '../src/spec/types.js'
import { noCompiler, runJob, specs } from './proof.js'

// Calls every function in libraries of other versions, made like the one of the marshalling proof. A call must arrive
// if the version has the function as generated, and otherwise throw an error with the reason.

const folder = scratchFolder()
const reason = noCompiler()

const earlier: Record<string, number[]> = {
  // 11.4 has no cuGetProcAddress_v2.
  driver: [11040, 12000, 12080],
  runtime: [11080, 12000, 12080],
  nccl: [21403, 22809],
  nvshmem: [30006, 30205],
  nvrtc: [7050, 11010, 12060],
  nvjitlink: [12000, 12030],
  cublas: [120001, 120600],
  cublasLt: [120001],
  nvml: [11080, 12040, 13000],
}
const later: Record<string, number> = {
  driver: 14000,
  runtime: 14000,
  nccl: 23203,
  nvshmem: 30501,
  nvrtc: 14000,
  nvjitlink: 14000,
  cublas: 140000,
  cublasLt: 140000,
  nvml: 14000,
}

interface Case {
  readonly spec: LibrarySpecFile
  readonly library: LibrarySpecFile
  readonly name: string
  readonly perThread?: boolean
}

/** Compiled libraries, by source: both default-stream modes use the same libraries. */
const recorders = new Map<string, Promise<string>>()

function recorderOf(library: LibrarySpecFile, name: string): Promise<string> {
  const units = emitRecorder(library)
  const source = units.join('\n')
  const recorder = recorders.get(source) ?? compileLibrary(join(folder, name), name, units)
  recorders.set(source, recorder)
  return recorder
}

async function callAll({ spec, library, name, perThread = false }: Case): Promise<Report> {
  return runJob(folder, name, {
    spec,
    library,
    recorder: await recorderOf(library, name),
    engine: 'versions',
    perThread,
    seed: library.headerVersion,
  })
}

async function expectAllRight(job: Case): Promise<Report> {
  const report = await callAll(job)
  expect(report.failures.slice(0, 20).map((failure) => `${failure.function}, ${failure.what}`)).toEqual([])
  expect(report.functions).toHaveLength(job.spec.functions.length)
  console.log(`${job.name}: of ${job.spec.functions.length} functions ${report.refused} refuse`)
  return report
}

const cases = specs.flatMap((spec) => {
  const modes = spec.functions.some(({ perThreadSymbol }) => perThreadSymbol) ? [false, true] : [false]
  return modes.map((perThread) => [spec.library, perThread ? 'per-thread' : 'legacy', spec, perThread] as const)
})

describe.each(cases)('%s with the %s default stream', (library, mode, spec, perThread) => {
  const named = (name: string): string => `${library}-${mode}-${name}`

  test.for(earlier[library] ?? [])('resolves version %i', async (version, { skip }) => {
    if (reason !== undefined) return skip(reason)
    const report = await expectAllRight({
      spec,
      library: earlierLibrary(spec, version),
      name: named(`${version}`),
      perThread,
    })
    expect(report.refused).toBeGreaterThan(0)
    expect(report.refused).toBeLessThan(spec.functions.length)
  })

  test('resolves the original ABI of every function in a later version with new ABIs', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const made = laterLibrary(spec, later[library] as number)
    const report = await expectAllRight({ spec, library: made, name: named('later'), perThread })
    expect(report.refused).toBe(0)
  })

  test('throws a stable error per function after one search, in a library without functions', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const report = await expectAllRight({ spec, library: emptyLibrary(spec), name: named('empty'), perThread })
    expect(report.refused).toBeGreaterThan(spec.functions.length - 4)
  })

  test('reports exactly the wrong first versions', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const version = (earlier[library] as number[])[0] as number
    const of = (isLater: boolean): FunctionSpec[] =>
      spec.functions
        .filter((entry) => entry.otherMajors === undefined && entry.supersededBy === undefined)
        .filter(({ name, symbol, since }) => since > version === isLater && !/Version|version/.test(name + symbol))
    const [late, soon] = [of(true)[0] as FunctionSpec, of(false)[0] as FunctionSpec]
    const wrong = new Map([
      [late.name, { ...late, since: version - 1 }],
      [soon.name, { ...soon, since: version + 1 }],
    ])
    // The library is correct; the expectation is wrong.
    const functions = spec.functions.map((entry) => wrong.get(entry.name) ?? entry)
    const there = earlierLibrary(spec, version)
    const made = { ...there, functions: there.functions.filter(({ name }) => name !== soon.name) }
    const report = await callAll({ spec: { ...spec, functions }, library: made, name: named('broken'), perThread })
    const reported = new Set(report.failures.map((failure) => failure.function))
    expect([...reported].sort()).toEqual([late.name, soon.name].sort())
  })
})
