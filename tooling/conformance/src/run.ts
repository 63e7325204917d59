#!/usr/bin/env node
/** Runs the suite with only Node, on a GPU host without a package manager. */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type RunEnvironment, readEnvironment } from './environment.js'
import { type CaseResult, runCase } from './runner.js'
import { suites } from './suites/index.js'
import { disposeDelays } from './support/delay.js'

const usage = `node run.js [--json FILE] [--filter TEXT] [--without TEXT]…
  --json FILE     write the report to FILE
  --filter TEXT   run only cases whose "suite: name" contains TEXT
  --without TEXT  and none whose "suite: name" contains TEXT
Of what there is too much of, the software device gets a sample, another in each run, unless SHOAL_CONFORMANCE=full.
With SHOAL_EXPECT_GPU=1 it fails where there is no GPU. SHOAL_KERNELS names the folder of test kernels.
SHOAL_SEED=N repeats the random numbers of a failed case.`

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      json: { type: 'string' },
      filter: { type: 'string' },
      without: { type: 'string', multiple: true },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const environment = readEnvironment()
  print(environment)
  if (process.env['SHOAL_EXPECT_GPU'] === '1' && (environment.software || environment.devices.length === 0)) {
    console.log('FAIL: a GPU was expected (SHOAL_EXPECT_GPU=1) and none is in use')
    return 1
  }
  const results: CaseResult[] = []
  for (const suite of suites) {
    for (const test of suite.cases) {
      const name = `${suite.name}: ${test.name}`
      if (values.filter !== undefined && !name.includes(values.filter)) continue
      if (values.without?.some((text) => name.includes(text)) === true) continue
      const result = await runCase(suite, test)
      results.push(result)
      report(result)
    }
  }
  await disposeDelays()
  const count = (outcome: CaseResult['outcome']): number => results.filter((one) => one.outcome === outcome).length
  const summary = { passed: count('ok'), failed: count('fail'), skipped: count('skip') }
  console.log(`${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped`)
  if (values.json !== undefined) {
    const cases = results.map((result) => ({
      ...result,
      error: result.error === undefined ? undefined : textOf(result.error),
    }))
    writeFileSync(values.json, `${JSON.stringify({ environment, summary, cases }, undefined, 2)}\n`)
  }
  if (results.length === 0) {
    console.log('FAIL: no case has this name')
    return 1
  }
  return summary.failed === 0 ? 0 : 1
}

function print(environment: RunEnvironment): void {
  console.log(`Node ${environment.node}, ${environment.platform}, CUDA driver ${environment.driverVersion}`)
  for (const device of environment.devices) {
    const kind = device.software ? 'software device' : 'GPU'
    console.log(`device ${device.ordinal}: ${device.name} (${kind}), ${device.uuid}`)
  }
}

function report(result: CaseResult): void {
  const label = { ok: 'ok  ', fail: 'FAIL', skip: 'skip' }[result.outcome]
  const reason = result.reason === undefined ? '' : `: ${result.reason}`
  console.log(`${label} ${result.suite}: ${result.name}${reason} (${result.milliseconds} ms)`)
  for (const note of result.notes) console.log(`       ${note}`)
  if (result.outcome !== 'fail') return
  console.log(indented(textOf(result.error)))
  if (result.seed !== undefined) console.log(`       repeat with SHOAL_SEED=${result.seed}`)
}

function textOf(error: unknown): string {
  if (error instanceof AggregateError) return [error.message, ...error.errors.map(textOf)].join('\n')
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '       ')
}

// Exits explicitly, because a case that hangs must not keep the process alive.
process.exit(await main())
