import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
// Internal: tests the answers of the rendezvous, without connections and waits.
import { maximumValueBytes } from '../src/rendezvous/frames.js'
import { late, left, lost, made } from './support/rendezvousState.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  // Removes the remaining timers.
  vi.clearAllTimers()
  vi.useRealTimers()
})

describe('values of a job', () => {
  test('are delivered at once or when set, and can be replaced', () => {
    const { ask, answers } = made(3)
    const early = [ask(1, 'get', { name: 'k' }), ask(1, 'get', { name: 'other' }), ask(2, 'get', { name: 'k' })]
    const set = ask(0, 'set', { name: 'k' }, 'one')
    expect(answers()).toEqual([[{ id: set }], [{ id: early[0], body: 'one' }], [{ id: early[2], body: 'one' }]])
    const again = ask(2, 'set', { name: 'k' }, 'two')
    const get = ask(0, 'get', { name: 'k' })
    expect(answers()).toEqual([[{ id: get, body: 'two' }], [], [{ id: again }]])
    const whole = ask(0, 'set', { name: 'k' }, 'x'.repeat(maximumValueBytes))
    expect(answers()[0]).toEqual([{ id: whole }])
  })

  test('time out if not set, and requests can be cancelled', () => {
    const { ask, answers } = made(2)
    const id = ask(0, 'get', { name: 'k', timeout: 10 })
    const cancelled = ask(0, 'get', { name: 'k', timeout: 5 })
    ask(0, 'cancel', { id: cancelled })
    // Cancelling an unknown request is not an error.
    ask(0, 'cancel', { id: 999 })
    ask(1, 'cancel', { id })
    vi.advanceTimersByTime(10)
    expect(answers()).toEqual([[{ id, failure: late() }], []])
    ask(1, 'set', { name: 'k' })
    expect(answers()[0]).toEqual([])
  })

  test('are not waited for after a rank is lost or all others have left', () => {
    const { state, ask, answers } = made(3)
    const first = ask(0, 'get', { name: 'k' })
    state.gone(1, 'left')
    expect(answers()[0]).toEqual([])
    state.gone(2, 'left')
    expect(answers()[0]).toEqual([{ id: first, failure: left(2) }])
    const other = made(3)
    const [one, two] = [other.ask(0, 'get', { name: 'k' }), other.ask(1, 'get', { name: 'k' })]
    other.state.gone(2, 'lost')
    const event = { event: 'lost', space: 0, ranks: [2] }
    expect(other.answers()).toEqual([
      [event, { id: one, failure: lost(2) }],
      [event, { id: two, failure: lost(2) }],
      [],
    ])
    const late = other.ask(1, 'get', { name: 'new' })
    expect(other.answers()[1]).toEqual([{ id: late, failure: lost(2) }])
    // Values that exist can still be read.
    const set = other.ask(0, 'set', { name: 'k' }, 'v')
    const get = other.ask(1, 'get', { name: 'k' })
    expect(other.answers()).toEqual([[{ id: set }], [{ id: get, body: 'v' }], []])
  })
})

describe('values that are not set', () => {
  test.each(['left', 'ended'] as const)('fail for a rank that asks after all others are gone: %s', (how) => {
    const { state, ask, answers } = made(3)
    state.gone(1, 'left')
    // Rank 2 can still set it.
    const early = ask(0, 'get', { name: 'k' })
    expect(answers()[0]).toEqual([])
    state.gone(2, how)
    const events = how === 'left' ? [] : [{ event: 'lost', space: 0, ranks: [2] }]
    expect(answers()[0]).toEqual([...events, { id: early, failure: left(2) }])
    const after = ask(0, 'get', { name: 'k' })
    expect(answers()[0]).toEqual([{ id: after, failure: how === 'left' ? left(1, 2) : lost(2) }])
    // Values that exist can still be read.
    const set = ask(0, 'set', { name: 'k' }, 'v')
    const get = ask(0, 'get', { name: 'k' })
    expect(answers()[0]).toEqual([{ id: set }, { id: get, body: 'v' }])
  })

  test('turn exited programs into lost ranks if no other rank is left', () => {
    const { state, ask, answers } = made(3)
    for (const rank of [1, 2]) state.gone(rank, 'ended')
    expect(answers()[0]).toEqual([])
    const id = ask(0, 'get', { name: 'k' })
    expect(answers()[0]).toEqual([
      { event: 'lost', space: 0, ranks: [1, 2] },
      { id, failure: left(1, 2) },
    ])
    expect([1, 2].map((rank) => state.presenceOf(rank))).toEqual(['lost', 'lost'])
  })

  test('fail as soon as another rank finds that a rank is lost', () => {
    const { state, ask, answers } = made(3)
    const early = ask(0, 'get', { name: 'k' })
    state.gone(2, 'ended')
    expect(answers()[0]).toEqual([])
    const barrier = ask(1, 'barrier', { name: 'x' })
    const event = { event: 'lost', space: 0, ranks: [2] }
    expect(answers()).toEqual([
      [event, { id: early, failure: lost(2) }],
      [event, { id: barrier, failure: left(2) }],
      [],
    ])
    const other = made(3)
    const [waits, get] = [other.ask(1, 'barrier', { name: 'x' }), other.ask(0, 'get', { name: 'k' })]
    other.state.gone(2, 'ended')
    const told = (id: number) => [event, { id, failure: left(2) }]
    expect(other.answers()).toEqual([told(get), told(waits), []])
  })

  test('may still be set by a rank that was always alone, or is the only survivor', () => {
    const { ask, answers } = made(1)
    const id = ask(0, 'get', { name: 'k' })
    const set = ask(0, 'set', { name: 'k' }, 'v')
    expect(answers()[0]).toEqual([{ id: set }, { id, body: 'v' }])
    const other = made(2)
    other.state.gone(1, 'left')
    other.ask(0, 'survivors')
    other.answers()
    const get = other.ask(0, 'get', { name: 'k', space: 1 })
    expect(other.answers()[0]).toEqual([])
    other.ask(0, 'set', { name: 'k', space: 1 }, 'v')
    expect(other.answers()[0]).toContainEqual({ id: get, body: 'v' })
  })
})
