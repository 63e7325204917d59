import { describe, expect, test } from 'vitest'
import { reasonNotCalled, reasons } from './fixtures/notCalled.js'
import { boundFunctions, callsIn, compileRecordingLibrary, runOn } from './fixtures/recordingLibrary.js'

const { library, calls } = compileRecordingLibrary()

const run = runOn(library, 'allFunctions.mjs', { SHOAL_CALLS: calls })
const byCommunicator = runOn(library, 'allFunctions.mjs', { SHOAL_CALLS: calls }, ['communicator'])

describe('the functions of libnvshmem_host', () => {
  test('can all be called from a program', () => {
    expect(run.errors).toBe('')
    expect(run.stdout).toBe('all called\n')
    expect(byCommunicator.errors).toBe('')
  })

  test('are each used by the package or excluded with a reason', () => {
    const reached = new Set(callsIn(calls))
    const missing = boundFunctions
      .map(({ name }) => name)
      .filter((name) => !reached.has(name) && reasonNotCalled(name, reached) === undefined)
    expect(missing).toEqual([])
    expect(boundFunctions.length).toBeGreaterThanOrEqual(1478)
  })

  test('that are excluded are not used', () => {
    const reached = new Set(callsIn(calls))
    expect(Object.keys(reasons).filter((name) => reached.has(name))).toEqual([])
    const bound = new Set(boundFunctions.map(({ name }) => name))
    expect([...reached, ...Object.keys(reasons)].filter((name) => !bound.has(name))).toEqual([])
  })
})
