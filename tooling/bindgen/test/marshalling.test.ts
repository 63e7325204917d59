import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { compileLibrary } from '../src/proof/compile.js'
import type { Engine, Report } from '../src/proof/job.js'
import { breakSpec } from '../src/proof/mutations.js'
import { emitRecorder } from '../src/proof/recorder.js'
import { noCompiler, runJob, specs } from './proof.js'

// Calls every function of every library through the package that users install. The native library is made from the
// spec alone and records the arguments.

const folder = scratchFolder()
const rows: string[] = []
const total = { calls: 0, arguments: 0 }

const reason = noCompiler()

/** Only the first failures, so that a broken generator does not flood the report. */
function failuresOf({ failures }: Report): string[] {
  return failures.slice(0, 20).map((failure) => `${failure.function}, ${failure.what}`)
}

afterAll(() => {
  const functions = specs.reduce((sum, spec) => sum + spec.functions.length, 0)
  const last = `all: ${functions} functions, ${total.calls} calls, ${total.arguments} arguments`
  console.log(['library, engine, streams: functions, calls, arguments', ...rows, last].join('\n'))
})

describe.each(specs.map((spec) => [spec.library, spec] as const))('marshalling of %s', (library, spec) => {
  const names = spec.functions.map(({ name }) => name).sort()
  const hasModes = spec.functions.some(({ perThreadSymbol }) => perThreadSymbol)
  const modes = hasModes ? (['legacy', 'per-thread'] as const) : (['legacy'] as const)
  let recorder = ''

  beforeAll(async () => {
    if (reason === undefined) recorder = await compileLibrary(join(folder, library), library, emitRecorder(spec))
  })

  const prove = async (engine: Engine, mode: 'legacy' | 'per-thread'): Promise<Report> => {
    const report = await runJob(folder, `${library}-${engine}-${mode}`, {
      spec,
      recorder,
      engine,
      perThread: mode === 'per-thread',
      seed: 0x5a0a1,
    })
    total.calls += report.calls
    total.arguments += report.arguments
    rows.push(`${library}, ${engine}, ${mode}: ${report.functions.length}, ${report.calls}, ${report.arguments}`)
    return report
  }

  describe.each(modes)('with the %s default stream', (mode) => {
    test.for(['block', 'recording', 'koffi', 'koffi block'] as const)(
      'delivers every argument and result of every function: %s',
      async (engine, { skip }) => {
        if (reason !== undefined) return skip(reason)
        const report = await prove(engine, mode)
        expect(failuresOf(report)).toEqual([])
        expect(report.functions.toSorted()).toEqual(names)
        expect(report.calls).toBeGreaterThanOrEqual(5 * names.length)
      },
    )
  })

  test('refuses bad input of every parameter by name, without running native code', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const report = await prove('refusals', 'legacy')
    expect(failuresOf(report)).toEqual([])
    expect(report.functions.toSorted()).toEqual(names)
    // Each parameter gets bad values, and once a good value.
    expect(report.arguments).toBe(2 * spec.functions.reduce((sum, { parameters }) => sum + parameters.length, 0))
  })

  test('reports exactly the wrong functions', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const { library: wrong, expectation, broken } = breakSpec(spec)
    const report = await runJob(folder, `${library}-broken`, {
      spec: expectation,
      recorder: await compileLibrary(join(folder, `${library}-broken`), library, emitRecorder(wrong)),
      engine: 'block',
      perThread: false,
      seed: 1,
    })
    expect(broken.size).toBeGreaterThanOrEqual(7)
    const reported = new Set(report.failures.map((failure) => failure.function))
    expect([...reported].sort()).toEqual([...broken.keys()].sort())
    rows.push(`${library}, broken on purpose and reported: ${broken.size}`)
  })
})
