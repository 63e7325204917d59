import { beforeAll, describe, expect, test } from 'vitest'
import { makeTests, programs, type Report, runProgram, testNames } from './build.js'

beforeAll(makeTests, 900_000)

// Each program runs its tests in one process, one after the other. This file reports each of them by its name.
describe.each(programs)('%s', (program) => {
  let report: Report
  beforeAll(() => {
    report = runProgram(program)
  }, 900_000)

  test.for(testNames(program))('%s', (name, { skip }) => {
    const line = report.lines.get(name) ?? `did not run: ${report.signal ?? report.status} ${report.errors}`
    const reason = /^skipped \w+: (.*)/.exec(line)?.[1]
    skip(reason !== undefined, reason)
    expect(line).toBe(`ok ${name}`)
  })

  test('exits with status 0', () => {
    expect({ status: report.status, signal: report.signal, errors: report.errors }).toEqual({
      status: 0,
      signal: null,
      errors: '',
    })
  })
})
