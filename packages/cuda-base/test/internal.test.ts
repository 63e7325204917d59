import * as whole from '@shoal/cuda-base'
import * as basics from '@shoal/cuda-base/basics'
import * as internal from '@shoal/cuda-base/internal'
import * as internalBasics from '@shoal/cuda-base/internal-basics'
import * as driver from '@shoal/cuda-sys/driver/common'
import * as ffi from '@shoal/ffi'
import * as calls from '@shoal/ffi/calls'
import * as types from '@shoal/types'
import { expect, test } from 'vitest'

const entries = { ffi, calls, types, basics }

// Bundles have all of these from one file: two things of one name would be one of them.
test.each([
  ['internal', internal, { ...entries, whole }],
  ['internal-basics', internalBasics, entries],
] as const)('%s has what the entries have', (_, file: Readonly<Record<string, unknown>>, has) => {
  for (const [entry, exports] of Object.entries(has)) {
    const others = Object.entries(exports).filter(([name, value]) => file[name] !== value)
    expect(
      others.map(([name]) => name),
      entry,
    ).toEqual([])
  }
})

test('internal has what safe packages use of the driver', () => {
  expect(Object.keys(internal)).toEqual(expect.arrayContaining(Object.keys(driver)))
})
