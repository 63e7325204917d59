import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
// Internal: tests the answers of the rendezvous, without connections and waits.
import { maximumValueBytes } from '../src/rendezvous/frames.js'
import { mostRanks, RendezvousState } from '../src/rendezvous/state.js'
import { late, left, lost, made, refused, twice } from './support/rendezvousState.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  // Removes the remaining timers.
  vi.clearAllTimers()
  vi.useRealTimers()
})

test('a rank is first absent, then present, then permanently gone', () => {
  const state = new RendezvousState(3)
  expect([state.worldSize, state.presenceOf(0)]).toEqual([3, 'absent'])
  state.connected(0, () => undefined)
  expect(state.presenceOf(0)).toBe('joined')
  for (const [rank, how] of [
    [0, 'left'],
    [1, 'lost'],
    [2, 'ended'],
  ] as const) {
    state.gone(rank, how)
    for (const other of ['left', 'lost', 'ended'] as const) state.gone(rank, other)
    expect(state.presenceOf(rank)).toBe(how)
  }
  expect(() => state.presenceOf(3)).toThrow('no rank 3')
  expect(mostRanks).toBe(1_048_576)
})

describe('join requests', () => {
  test('complete for all when the last rank joins, with the machine of each rank', () => {
    const { ask, answers } = made(3)
    const join = (rank: number) => ask(rank, 'join', { host: `host${rank % 2}`, timeout: 50 })
    const [first, third] = [join(0), join(2)]
    expect(answers()).toEqual([[], [], []])
    const second = join(1)
    // The machine number of each rank, in 32 bits.
    const body = '\0\0\0\0\x01\0\0\0\0\0\0\0'
    expect(answers()).toEqual([first, second, third].map((id) => [{ id, body }]))
    vi.advanceTimersByTime(100)
    expect([answers(), vi.getTimerCount()]).toEqual([[[], [], []], 0])
  })

  test.each([
    ['lost', lost(2)],
    ['left', left(2)],
    ['ended', left(2)],
  ] as const)('cannot complete once a rank is gone: %s', (how, failure) => {
    const { state, ask, answers } = made(3)
    const first = ask(0, 'join', { host: '' })
    ask(2, 'join', { host: '' })
    state.gone(2, how)
    const told = (id: number) => ({ id, failure })
    // An ended rank counts as lost only when another rank needs it.
    const event = how === 'lost' ? [{ event: 'lost', space: 0, ranks: [2] }] : []
    expect(answers()).toEqual([[told(first), ...event], event, []])
    const second = ask(1, 'join', { host: '' })
    const announced = how === 'ended' ? [{ event: 'lost', space: 0, ranks: [2] }] : []
    expect(answers()).toEqual([announced, [...announced, told(second)], []])
    expect(state.presenceOf(2)).toBe(how === 'ended' ? 'lost' : how)
  })

  test('fail for all that wait for the same ranks when the first timeout expires', () => {
    const state = new RendezvousState(4)
    const heard: unknown[] = []
    for (const rank of [0, 2]) {
      state.connected(rank, (header) => heard.push(header))
      state.received(rank, { op: 'join', id: rank, host: '', timeout: 100 * (rank + 1) }, Buffer.alloc(0))
    }
    vi.advanceTimersByTime(99)
    expect(heard).toEqual([])
    vi.advanceTimersByTime(1)
    expect(heard).toEqual([0, 2].map((id) => ({ id, failure: late(1, 3) })))
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([-5, 0])('time out at once with a limit of %d ms', (timeout) => {
    const { ask, answers } = made(2)
    ask(0, 'join', { host: '', timeout })
    vi.advanceTimersByTime(1)
    expect(answers()[0]).toHaveLength(1)
  })

  test('cap the timeout at the maximum of a timer', () => {
    const { ask, answers } = made(2)
    ask(0, 'join', { host: '', timeout: 2 ** 40 })
    vi.advanceTimersByTime(2 ** 31 - 2)
    expect(answers()[0]).toEqual([])
    vi.advanceTimersByTime(1)
    expect(answers()[0]).toHaveLength(1)
  })

  test('without a timeout wait without limit', () => {
    made(2).ask(0, 'join', { host: '' })
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe.each(['barrier', 'gather'] as const)('%s', (op) => {
  const result = (id: number, values: string[]) => ({
    ...{ id, lengths: op === 'gather' ? values.map((value) => value.length) : [] },
    body: op === 'gather' ? values.join('') : '',
  })

  test('completes by name when all have come, and starts again', () => {
    const { ask, answers } = made(3)
    for (const round of ['a', 'bb']) {
      const ids = [2, 0].map((rank) => ask(rank, op, { name: 'x' }, `${round}${rank}`))
      ask(1, op, { name: 'y' }, 'other')
      expect(answers()).toEqual([[], [], []])
      const id = ask(1, op, { name: 'x' }, '')
      const values = [`${round}0`, '', `${round}2`]
      expect(answers()).toEqual([ids[1]!, id, ids[0]!].map((one) => [result(one, values)]))
      ask(1, 'cancel', { id: id - 1 })
    }
  })

  test('of one rank completes at once', () => {
    const { ask, answers } = made(1)
    const id = ask(0, op, { name: 'x' }, 'v')
    expect(answers()).toEqual([[result(id, ['v'])]])
  })

  test('refuses a second call of a rank, and another operation of the same name', () => {
    const { ask, answers } = made(2)
    const first = ask(0, op, { name: 'x' }, 'v')
    const second = ask(0, op, { name: 'x' }, 'w')
    expect(answers()[0]).toEqual([{ id: second, failure: twice }])
    ask(1, op === 'gather' ? 'barrier' : 'gather', { name: 'x' })
    expect(answers()).toEqual([[], []])
    const id = ask(1, op, { name: 'x' }, 'z')
    expect(answers()).toEqual([[result(first, ['v', 'z'])], [result(id, ['v', 'z'])]])
  })

  test('names the missing ranks or, if all came, the ranks that gave up waiting', () => {
    const { ask, answers } = made(4)
    const wait = (rank: number, timeout: number) => ask(rank, op, { name: 'x', timeout })
    const first = wait(0, 10)
    const second = wait(1, 20)
    vi.advanceTimersByTime(10)
    expect(answers()[0]).toEqual([{ id: first, failure: late(2, 3) }])
    vi.advanceTimersByTime(10)
    // Rank 0 had called it, so the error names the others.
    expect(answers()[1]).toEqual([{ id: second, failure: late(2, 3) }])
    // No rank waits, so everything starts again.
    const ids = [wait(0, 5), wait(1, 50), wait(2, 50)]
    vi.advanceTimersByTime(5)
    expect(answers()[0]).toEqual([{ id: ids[0], failure: late(3) }])
    wait(3, 50)
    vi.advanceTimersByTime(45)
    expect(answers()[1]).toEqual([{ id: ids[1], failure: late(0) }])
    // A rank that calls again has not cancelled.
    const fourth = wait(0, 100)
    vi.advanceTimersByTime(5)
    answers()
    const rest = [1, 2, 3].map((rank) => wait(rank, 100))
    expect(answers().flat()).toEqual(
      [fourth, ...rest].map((id) => expect.objectContaining({ id, lengths: expect.any(Array) })),
    )
  })

  test.each([
    ['lost', lost(2)],
    ['left', left(2)],
    ['ended', left(2)],
  ] as const)('cannot complete without a rank that is gone: %s', (how, failure) => {
    const { state, ask, answers } = made(3)
    const event = { event: 'lost', space: 0, ranks: [2] }
    ask(2, op, { name: 'x' })
    const id = ask(0, op, { name: 'x' })
    state.gone(2, how)
    const events = how === 'left' ? [] : [event]
    expect(answers()).toEqual([[...events, { id, failure }], events, []])
    const after = ask(1, op, { name: 'x' })
    expect(answers()).toEqual([[], [{ id: after, failure: how === 'left' ? left(2) : lost(2) }], []])
  })

  test('needs a rank whose program has exited, which then counts as lost', () => {
    const { state, ask, answers } = made(3)
    state.gone(2, 'ended')
    expect(answers()).toEqual([[], [], []])
    const id = ask(0, op, { name: 'x' })
    const event = { event: 'lost', space: 0, ranks: [2] }
    expect(answers()).toEqual([[event, { id, failure: left(2) }], [event], []])
    expect(state.presenceOf(2)).toBe('lost')
    // Lost ranks are named before ranks that have left.
    state.gone(1, 'left')
    const second = ask(0, op, { name: 'x' })
    expect(answers()[0]).toEqual([{ id: second, failure: lost(2) }])
  })
})

describe('share requests', () => {
  const share = (root: number, more: object = {}) => ({ name: 'x', root, ...more })

  test('deliver each value of the root to all ranks, in any order of arrival', () => {
    const { ask, answers } = made(3)
    const early = ask(1, 'share', share(0))
    const given = ask(0, 'share', share(0), 'one')
    expect(answers()).toEqual([[{ id: given }], [{ id: early, body: 'one' }], []])
    // The root does not wait and may be several calls ahead.
    for (const value of ['two', 'three']) ask(0, 'share', share(0), value)
    const second = [1, 2, 3].map(() => ask(2, 'share', share(0)))
    const third = [2, 3].map(() => ask(1, 'share', share(0)))
    const told = (ids: number[], values: string[]) => ids.map((id, index) => ({ id, body: values[index] }))
    expect(answers().slice(1)).toEqual([told(third, ['two', 'three']), told(second, ['one', 'two', 'three'])])
    const next = ask(1, 'share', share(0))
    expect(answers()[1]).toEqual([])
    ask(0, 'share', share(0), 'four')
    expect(answers()[1]).toEqual([{ id: next, body: 'four' }])
  })

  test('count separately per name, and each may have another root', () => {
    const { ask, answers } = made(3)
    ask(0, 'share', share(0), 'zero')
    const [one, two] = [ask(1, 'share', share(0)), ask(2, 'share', share(0))]
    const other = ask(1, 'share', { name: 'y', root: 1 }, 'y1')
    const given = ask(2, 'share', share(2), 'two')
    const wrong = ask(1, 'share', share(1), 'none')
    const right = ask(0, 'share', share(2))
    expect(answers()).toEqual([
      [{ id: 1 }, { id: right, body: 'two' }],
      [
        { id: one, body: 'zero' },
        { id: other },
        { id: wrong, failure: refused('this rank says that the root is rank 1, others say rank 2') },
      ],
      [{ id: two, body: 'zero' }, { id: given }],
    ])
  })

  test('report a failure of the root to make the value', () => {
    const { ask, answers } = made(3)
    const early = ask(1, 'share', share(0))
    const given = ask(0, 'share', share(0, { failed: 'no way' }))
    const after = ask(2, 'share', share(0))
    const failure = refused('no way')
    expect(answers()).toEqual([[{ id: given }], [{ id: early, failure }], [{ id: after, failure }]])
    // A value that is not text is not a failure.
    ask(0, 'share', share(0, { failed: 7 }), 'fine')
    const next = ask(1, 'share', share(0))
    expect(answers()[1]).toEqual([{ id: next, body: 'fine' }])
  })

  test('may be made once per rank, and wait for the root', () => {
    const { ask, answers } = made(3)
    const first = ask(1, 'share', share(2, { timeout: 10 }))
    const second = ask(1, 'share', share(2))
    expect(answers()[1]).toEqual([{ id: second, failure: twice }])
    vi.advanceTimersByTime(10)
    expect(answers()[1]).toEqual([{ id: first, failure: late(2) }])
    // No rank waits for it any more, so it may be another root's turn.
    const other = ask(0, 'share', share(0), 'v')
    const third = ask(1, 'share', share(0))
    expect(answers()).toEqual([[{ id: other }], [{ id: third, body: 'v' }], []])
  })

  test.each([
    ['lost', lost(0)],
    ['left', left(0)],
    ['ended', left(0)],
  ] as const)('depend on their root only: %s', (how, failure) => {
    const { state, ask, answers } = made(4)
    state.gone(3, 'left')
    const id = ask(1, 'share', share(0))
    const other = ask(1, 'share', { name: 'y', root: 2 })
    answers()
    state.gone(0, how)
    const events = how === 'left' ? [] : [{ event: 'lost', space: 0, ranks: [0] }]
    expect(answers()).toEqual([[], [...events, { id, failure }], events, []])
    const after = ask(2, 'share', share(0))
    expect(answers()[2]).toEqual([{ id: after, failure: how === 'left' ? left(0) : lost(0) }])
    const given = ask(2, 'share', { name: 'y', root: 2 }, 'v')
    expect(answers()).toEqual([[], [{ id: other, body: 'v' }], [{ id: given }], []])
  })

  test('of a root that is gone are delivered to later ranks', () => {
    const { state, ask, answers } = made(3)
    ask(0, 'share', share(0), 'v')
    state.gone(0, 'lost')
    answers()
    const ids = [1, 2].map((rank) => ask(rank, 'share', share(0)))
    expect(answers()).toEqual([[], [{ id: ids[0], body: 'v' }], [{ id: ids[1], body: 'v' }]])
  })
})

describe('many ranks lost together', () => {
  const ranks = Array.from({ length: 50 }, (_, index) => 50 + index)
  const event = { event: 'lost', space: 0, ranks }

  test('are reported to each rank once, in one shared object', () => {
    const state = new RendezvousState(100)
    const heard: object[] = []
    for (let rank = 0; rank < 100; rank += 1) state.connected(rank, (header) => void heard.push(header))
    state.gone(ranks.toReversed(), 'lost')
    expect(heard).toEqual(Array(50).fill(event))
    expect(new Set(heard).size).toBe(1)
  })

  test('fail all waits for any of them, and survivors() answers at once', () => {
    const { state, ask, answers } = made(100)
    const waiting = [
      ask(0, 'barrier', { name: 'b' }),
      ask(1, 'get', { name: 'k' }),
      ask(2, 'share', { name: 's', root: 77 }),
      ask(3, 'share', { name: 's', root: 77 }),
    ]
    ask(60, 'barrier', { name: 'b' })
    const ids = Array.from({ length: 46 }, (_, index) => ask(4 + index, 'survivors'))
    answers()
    state.gone([...ranks, 99], 'lost')
    const heard = answers()
    for (const [rank, id] of waiting.entries()) expect(heard[rank]).toEqual([event, { id, failure: lost(...ranks) }])
    for (let rank = 0; rank < 4; rank += 1) ids.push(ask(rank, 'survivors'))
    const members = Array.from({ length: 50 }, (_, index) => index)
    const told = answers().slice(0, 50).flat()
    expect(told).toHaveLength(50)
    for (const answer of told) expect(answer).toMatchObject({ space: 1, members })
  })
})

describe('survivors() requests', () => {
  const closed = refused('survivors() has ended this job')

  test('return the remaining ranks with new numbers and separate names', () => {
    const { state, ask, answers } = made(4)
    ask(0, 'set', { name: 'k' }, 'old')
    const waiting = [ask(0, 'get', { name: 'none' }), ask(0, 'share', { name: 's', root: 2 })]
    state.gone(1, 'left')
    answers()
    const ids = [0, 3].map((rank) => ask(rank, 'survivors'))
    expect(answers()).toEqual([[], [], [], []])
    const last = ask(2, 'survivors')
    const told = (id: number) => ({ id, space: 1, members: [0, 2, 3] })
    const ended = waiting.map((id) => ({ id, failure: closed }))
    expect(answers()).toEqual([[told(ids[0]!), ...ended], [], [told(last)], [told(ids[1]!)]])
    const late = ask(2, 'get', { name: 'k' })
    expect(answers()[2]).toEqual([{ id: late, failure: closed }])

    const fresh = ask(0, 'get', { name: 'k', space: 1 })
    expect(answers()[0]).toEqual([])
    ask(3, 'set', { name: 'k', space: 1 }, 'new')
    expect(answers()[0]).toEqual([{ id: fresh, body: 'new' }])
    // Roots and losses use the new numbers.
    const shared = ask(0, 'share', { name: 's', root: 2, space: 1 })
    const barrier = ask(2, 'barrier', { name: 'b', space: 1 })
    state.gone(3, 'lost')
    const event = { event: 'lost', space: 1, ranks: [2] }
    expect(answers()).toEqual([
      [event, { id: shared, failure: lost(2) }],
      [],
      [event, { id: barrier, failure: lost(2) }],
      expect.any(Array),
    ])
    const two = [ask(0, 'survivors', { space: 1 }), ask(2, 'survivors', { space: 1 })]
    const next = (id: number) => ({ id, space: 2, members: [0, 1] })
    expect(answers()).toEqual([[next(two[0]!)], [], [next(two[1]!)], []])
  })

  test('wait for all present ranks, and name the missing ranks on timeout', () => {
    const { state, ask, answers } = made(4)
    state.gone(3, 'lost')
    answers()
    const first = ask(0, 'survivors', { timeout: 10 })
    const second = ask(0, 'survivors')
    expect(answers()[0]).toEqual([{ id: second, failure: twice }])
    const third = ask(1, 'survivors', { timeout: 20 })
    vi.advanceTimersByTime(10)
    expect(answers()[0]).toEqual([{ id: first, failure: late(2) }])
    vi.advanceTimersByTime(10)
    expect(answers()[1]).toEqual([{ id: third, failure: late(2) }])
    const again = [ask(0, 'survivors', { timeout: 10 }), ask(1, 'survivors', { timeout: 100 })]
    vi.advanceTimersByTime(10)
    answers()
    ask(2, 'survivors', { timeout: 100 })
    vi.advanceTimersByTime(90)
    expect(answers()[1]).toEqual([{ id: again[1], failure: late(0) }])
  })

  test('complete when the rank they wait for is gone', () => {
    const { state, ask, answers } = made(3)
    const [one, two] = [ask(0, 'survivors'), ask(1, 'survivors')]
    state.gone(2, 'left')
    const told = (id: number) => ({ id, space: 1, members: [0, 1] })
    expect(answers()).toEqual([[told(one)], [told(two)], []])
  })

  test('of an ended job receive no more events about its ranks', () => {
    const { state, ask, answers } = made(3)
    state.gone(2, 'lost')
    for (const rank of [0, 1]) ask(rank, 'survivors')
    answers()
    state.gone(1, 'lost')
    expect(answers()).toEqual([[{ event: 'lost', space: 1, ranks: [1] }], [], []])
  })
})

test('requests of a rank are removed when the rank is gone', () => {
  const { state, ask, answers } = made(2)
  ask(0, 'get', { name: 'k', timeout: 10 })
  ask(0, 'survivors', { timeout: 10 })
  state.gone(0, 'left')
  expect(vi.getTimerCount()).toBe(0)
  const id = ask(1, 'survivors')
  expect(answers()).toEqual([[], [{ id, space: 1, members: [1] }]])
})

test('dispose() removes all requests', () => {
  const { state, ask, answers } = made(3)
  const wait = { name: 'k', timeout: 10 }
  ask(0, 'join', { host: '', timeout: 10 })
  for (const op of ['get', 'barrier', 'gather', 'survivors']) ask(0, op, wait)
  ask(0, 'share', { ...wait, root: 1 })
  expect(vi.getTimerCount()).toBe(6)
  state.dispose()
  expect(vi.getTimerCount()).toBe(0)
  // A launcher also reports its processes after that.
  for (const rank of [0, 1, 2]) state.gone(rank, 'lost')
  expect(answers()[0]).toEqual([])
})

describe('invalid messages', () => {
  const most = 'x'.repeat(256)

  test.each<[string, object, string, string]>([
    ['format', {}, '', 'no such operation'],
    ['get', { name: 'k', space: 1 }, '', 'no such space'],
    ['get', { name: 'k', space: '0' }, '', 'space is no integer'],
    ['get', { name: 'k', id: 0.5, space: 0 }, '', 'id is no integer'],
    ['get', { name: 'k', id: 2 ** 53 }, '', 'id is no integer'],
    ['get', { name: '' }, '', 'a name of wrong length'],
    ['get', { name: `${most}x` }, '', 'a name of wrong length'],
    ['barrier', { name: 'é'.repeat(129) }, '', 'a name of wrong length'],
    ['set', { name: 7 }, '', 'name is no text'],
    ['set', { name: 'k' }, 'x'.repeat(maximumValueBytes + 1), 'a value that is too long'],
    ['gather', { name: 'k' }, 'x'.repeat(maximumValueBytes + 1), 'a value that is too long'],
    ['share', { name: 'k', root: 0 }, 'x'.repeat(maximumValueBytes + 1), 'a value that is too long'],
    ['share', { name: 'k', root: 2 }, '', 'no such root'],
    ['share', { name: 'k', root: -1 }, '', 'no such root'],
    ['share', { name: 'k' }, '', 'root is no integer'],
    ['join', { host: 7 }, '', 'host is no text'],
    ['cancel', { id: '1' }, '', 'id is no integer'],
  ])('with %s of %j throw', (op, fields, body, message) => {
    expect(() => made(2).ask(0, op, fields, body)).toThrow(message)
  })

  test('with a request number in use or in a foreign space throw', () => {
    const { state, ask } = made(3)
    ask(0, 'get', { name: 'k', id: 5 })
    expect(() => ask(0, 'get', { name: 'k', id: 5 })).toThrow('a request number that is in use')
    expect(() => ask(1, 'get', { name: 'k', id: 5 })).not.toThrow()
    state.gone(2, 'lost')
    for (const rank of [0, 1]) ask(rank, 'survivors')
    expect(() => state.received(2, { op: 'set', id: 1, space: 1, name: 'k' }, Buffer.alloc(0))).toThrow('no such space')
  })

  test('with a name of the maximum length are valid', () => {
    for (const name of [most, 'é'.repeat(128)]) expect(() => made(2).ask(0, 'get', { name })).not.toThrow()
  })
})
