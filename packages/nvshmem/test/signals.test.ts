import { inspect } from 'node:util'
import { Device } from '@shoal/driver'
import type { SymmetricBuffer } from '@shoal/nvshmem'
import { beforeAll, describe, expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'
import { anything, onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()
let signal: SymmetricBuffer<'u64'>
let floats: SymmetricBuffer<'f32'>

beforeAll(async () => {
  signal = await pe.session.allocate('u64', 4, { zeroed: true })
  floats = await pe.session.allocate('f32', 8)
})

const wait = { comparison: '==', value: 1n, stream: null } as const

describe('Signals', () => {
  test('let streams of PEs wait for each other', async () => {
    const results = await resultsOf('atomics.signals', 3)
    for (const [rank, result] of results.entries()) {
      const before = (rank + 2) % 3
      expect(result).toEqual({
        first: [before + 1, before + 1, before + 1, before + 1],
        fetched: ['0n', '7n', `${1n << 63n}n`, '1n', '7n'],
      })
    }
  })

  test('are set by default, and added on request', async () => {
    const { signals } = pe.session
    const target = { pe: 0, index: 3, stream: null } as const
    for (const [value, op] of [[5n], [2n, 'add'], [1n, 'set'], [3n]] as const) {
      await signals.signalOnStream(signal, { ...target, value, op })
    }
    await signals.waitForSignalOnStream(signal, { ...wait, value: 3n, index: 3 })
    await pe.session.quietOnStream({ stream: null })
    await Device.get(0).synchronize()
    expect(signals.fetchSync(signal, { index: 3 })).toBe(3n)
    expect(await signals.fetch(signal)).toBe(0n)
  })

  test('print in one line', () => {
    expect(inspect(pe.session.signals)).toBe('Signals { pe: 0 }')
  })

  refuses(pe, [
    ['memory of another dtype', () => pe.session.signals.fetch(anything(floats)), /must be symmetric memory of u64/],
    [
      'null as options',
      () => pe.session.signals.fetch(signal, anything(null)),
      'Signals.fetch: options must be a plain object',
    ],
    [
      'an unknown option',
      () => pe.session.signals.fetch(signal, anything({ at: 1 })),
      "Signals.fetch: options must have only the keys index, not 'at'",
    ],
    [
      'an invalid operation',
      () => pe.session.signals.signalOnStream(signal, { pe: 0, value: 1, op: anything('sub'), stream: null }),
      "Signals.signalOnStream: op must be 'set' or 'add', not 'sub'",
    ],
    [
      'an invalid comparison',
      () => pe.session.signals.waitForSignalOnStream(signal, { ...wait, comparison: anything('=') }),
      /comparison must be '==', '!=', .* or '<=', not '='/,
    ],
    [
      'a wait for floats',
      () => pe.session.signals.waitUntilOnStream(anything(floats), wait),
      /no stream can wait for f32/,
    ],
    [
      'more elements than there are',
      () => pe.session.signals.waitUntilAllOnStream(signal, { ...wait, count: 5 }),
      RangeError,
    ],
    [
      'too few values',
      () =>
        pe.session.signals.waitUntilAllVectorOnStream(signal, {
          comparison: '==',
          values: pe.memory({ byteLength: 24 }),
          stream: null,
        }),
      /values has 24/,
    ],
    [
      'one value where there are several',
      () => pe.session.signals.waitUntilAllVectorOnStream(signal, anything({ ...wait, values: pe.memory() })),
      "not 'value'",
    ],
    [
      'a signal within the target of its put',
      () =>
        pe.session.putSignalOnStream(signal, pe.memory({ byteLength: 32 }), { pe: 0, signal, value: 1n, stream: null }),
      /lies within the target/,
    ],
    [
      'a signal that is not there',
      () =>
        pe.session.putSignalOnStream(floats, pe.memory({ byteLength: 32 }), {
          ...{ pe: 0, signal, value: 1n, stream: null },
          signalIndex: 4,
        }),
      'Session.putSignalOnStream: signalIndex must be an integer from 0 to 3, not 4',
    ],
  ])
})
