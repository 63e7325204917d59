import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { reasons, whyNotReached } from './fixtures/notReached.js'
import { boundFunctions, callsIn, compileRecordingLibrary } from './fixtures/recordingLibrary.js'

const { library, calls } = compileRecordingLibrary()

function runEverything(...argv: string[]): { readonly stdout: string; readonly stderr: string } {
  return spawnSync(process.execPath, [fileURLToPath(new URL('fixtures/everything.mjs', import.meta.url)), ...argv], {
    encoding: 'utf8',
    timeout: 50_000,
    env: {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: '1',
      SHOAL_NVSHMEM_LIBRARY: library,
      SHOAL_CALLS: calls,
      NODE_OPTIONS: '',
    },
  })
}

const run = runEverything()
const byCommunicator = runEverything('communicator')

describe('the functions of libnvshmem_host', () => {
  test('a program can call everything that is offered', () => {
    expect(run.stderr.replace(/^shoal: software device.*\n/, '')).toBe('')
    expect(run.stdout).toBe('all called\n')
    expect(byCommunicator.stderr.replace(/^shoal: software device.*\n/, '')).toBe('')
  })

  test('are all reached, or left out for a reason', () => {
    const reached = new Set(callsIn(calls))
    const missing = boundFunctions
      .map(({ name }) => name)
      .filter((name) => !reached.has(name) && whyNotReached(name, reached) === undefined)
    expect(missing).toEqual([])
    expect(boundFunctions.length).toBeGreaterThanOrEqual(1478)
  })

  test('none that is left out is reached', () => {
    const reached = new Set(callsIn(calls))
    expect(Object.keys(reasons).filter((name) => reached.has(name))).toEqual([])
    const bound = new Set(boundFunctions.map(({ name }) => name))
    expect([...reached, ...Object.keys(reasons)].filter((name) => !bound.has(name))).toEqual([])
  })
})
