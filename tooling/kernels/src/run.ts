#!/usr/bin/env node
/** `node run.js [--json FILE] [--filter TEXT] [--seed N]`: runs the corpus on the installed device. */
import { randomInt } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Device } from '@shoal/driver'
import { cases, type Outcome, runCases } from './index.js'

const { values } = parseArgs({
  options: { json: { type: 'string' }, filter: { type: 'string' }, seed: { type: 'string' } },
})
const seed = values.seed === undefined ? randomInt(2 ** 32) : Number(values.seed)
const device = Device.get(0)
console.log(`${device.name}, seed ${seed}`)
const chosen = cases.filter(({ file, name }) => `${file} ${name}`.includes(values.filter ?? ''))
const outcomes = await runCases(device, seed, chosen, ({ file, name, outcome, milliseconds, ...rest }) => {
  console.log(
    `${outcome.padEnd(4)} ${file} ${name}: ${rest.error ?? `${notesOf(rest)}, ${milliseconds.toFixed(0)} ms`}`,
  )
})
const count = (outcome: string): number => outcomes.filter((one) => one.outcome === outcome).length
const summary = { passed: count('ok'), failed: count('fail'), skipped: count('skip') }
console.log(`${summary.passed} right, ${summary.failed} wrong, ${summary.skipped} skipped`)
if (values.json !== undefined) {
  // The same fields as the conformance suite's, so that one page shows both.
  const table = outcomes.map(({ file, error, compared, worst, allowed, ...rest }) => ({
    ...rest,
    suite: file,
    ...(error === undefined ? {} : rest.outcome === 'skip' ? { reason: error } : { error }),
    notes: [notesOf({ compared, worst, allowed })],
  }))
  writeFileSync(values.json, `${JSON.stringify({ seed, summary, cases: table })}\n`)
}
process.exitCode = summary.passed > 0 && summary.failed === 0 ? 0 : 1

function notesOf({ compared, worst, allowed }: Pick<Outcome, 'compared' | 'worst' | 'allowed'>): string {
  return `${compared} values, ${allowed === 0 ? 'every bit' : `${worst.toFixed(2)} of ${allowed} ulp`}`
}
