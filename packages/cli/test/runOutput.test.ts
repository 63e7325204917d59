import { EventEmitter } from 'node:events'
import { fstatSync } from 'node:fs'
import { isHungUp } from '@shoal/ffi'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { watchHangUp } from '../src/run/hangUp.js'
import { LineSink } from '../src/run/output.js'
import { prefixOf } from '../src/run/prefix.js'

vi.mock('node:fs', async (original) => ({ ...(await original<object>()), fstatSync: vi.fn() }))
vi.mock('@shoal/ffi', async (original) => ({ ...(await original<object>()), isHungUp: vi.fn() }))

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  vi.useRealTimers()
})

describe('output lines of several ranks', () => {
  /** A stream that accepts `room` writes and then reports that it is full. */
  function made(room = Number.POSITIVE_INFINITY) {
    const written: string[] = []
    const stream = Object.assign(new EventEmitter(), {
      destroyed: false,
      write: vi.fn((bytes: Buffer) => {
        written.push(bytes.toString())
        return written.length < room
      }),
    })
    const onBroken = vi.fn()
    const sink = new LineSink(stream as never, onBroken)
    const take = (prefix = '') => {
      const source = Object.assign(new EventEmitter(), { pause: vi.fn(), resume: vi.fn() })
      sink.take(source as never, prefix)
      const give = (text: string | Buffer): void => void source.emit('data', Buffer.from(text))
      return { source, give, end: () => void source.emit('close') }
    }
    return { written, stream, onBroken, sink, take }
  }

  test('are whole, with their prefix, however they arrive', () => {
    const { written, take } = made()
    const [one, other] = [take('[0] '), take('[1] ')]
    one.give('a')
    other.give('x\ny')
    one.give('b')
    one.give('\nc\n\nd')
    other.give('\n')
    one.end()
    other.end()
    expect(written).toEqual(['[1] x\n', '[0] ab\n[0] c\n[0] \n', '[1] y\n', '[0] d\n'])
  })

  test('without an end are cut at 1 MiB, whatever came before', () => {
    const { written, take } = made()
    const { give, end } = take('> ')
    const most = 2 ** 20
    give(`short\n${'x'.repeat(most - 1)}`)
    expect(written).toEqual(['> short\n'])
    give('y')
    expect(written[1]).toBe(`> ${'x'.repeat(most - 1)}y\n`)
    // The count starts again, also after a complete line.
    give('z'.repeat(most - 1))
    give('\n')
    give('z'.repeat(most - 1))
    expect(written.slice(2)).toEqual([`> ${'z'.repeat(most - 1)}\n`])
    give('zz')
    expect(written[3]).toBe(`> ${'z'.repeat(most + 1)}\n`)
    end()
    expect(written).toHaveLength(4)
  })

  test('are copied, so that the source may reuse its buffer', () => {
    const { written, take } = made()
    const { source, end } = take()
    const chunk = Buffer.from('abc')
    source.emit('data', chunk)
    chunk.fill('x')
    end()
    expect(written).toEqual(['abc\n'])
  })

  test('wait for a slow reader, also lines of new sources', () => {
    const { sink, stream, take } = made(2)
    const [one, other, ended] = [take(), take(), take()]
    ended.end()
    one.give('a\n')
    expect([sink.isBlocked, one.source.pause.mock.calls.length]).toEqual([false, 0])
    one.give('b\n')
    expect(sink.isBlocked).toBe(true)
    const late = take()
    const pauses = () => [one, other, ended, late].map(({ source }) => source.pause.mock.calls.length)
    const resumes = () => [one, other, ended, late].map(({ source }) => source.resume.mock.calls.length)
    expect([pauses(), resumes()]).toEqual([
      [1, 1, 0, 1],
      [0, 0, 0, 0],
    ])
    stream.emit('drain')
    expect([sink.isBlocked, resumes()]).toEqual([false, [1, 1, 0, 1]])
    take()
    expect(sink.isBlocked).toBe(false)
  })

  test('are dropped without waiting after a write error', () => {
    const { sink, stream, written, onBroken, take } = made(1)
    const { source, give, end } = take()
    give('a\n')
    expect(sink.isBlocked).toBe(true)
    const [first, second] = [new Error('first'), new Error('second')]
    stream.emit('error', first)
    stream.emit('error', second)
    expect(onBroken.mock.calls).toEqual([[first]])
    expect([sink.isBlocked, source.resume.mock.calls.length]).toEqual([false, 1])
    give('b\nc')
    end()
    expect(written).toEqual(['a\n'])
    expect(sink.isBlocked).toBe(false)
  })

  test('are dropped after the stream has ended', () => {
    const { sink, stream, written, take } = made()
    stream.destroyed = true
    take().give('a\n')
    expect([written, sink.isBlocked]).toEqual([[], false])
  })

  test('do not wait for a stream that broke while they were written', () => {
    const { sink, stream, take } = made()
    const { source, give } = take()
    stream.write.mockImplementation(() => {
      stream.emit('error', new Error('broken'))
      return false
    })
    give('a\n')
    expect([sink.isBlocked, source.pause.mock.calls.length]).toEqual([false, 0])
  })

  test('end with a source that fails', () => {
    const { written, take } = made()
    const { source, give, end } = take()
    give('a')
    source.emit('error', new Error('it fails'))
    end()
    expect(written).toEqual(['a\n'])
  })
})

test.each([
  [0, 1, '[0] ', 36],
  [9, 10, '[9] ', 35],
  [9, 11, '[ 9] ', 35],
  [10, 11, '[10] ', 34],
  [6, 1000, '[  6] ', 36],
  [7, 1001, '[   7] ', 33],
])('the prefix of rank %d of %d is %j, on a terminal in colour', (rank, ranks, plain, colour) => {
  vi.stubEnv('NO_COLOR', undefined)
  expect(prefixOf(rank, ranks, { isTTY: false })).toBe(plain)
  expect(prefixOf(rank, ranks, { isTTY: true })).toBe(`\u001b[${colour}m${plain.trimEnd()}\u001b[0m `)
  vi.stubEnv('NO_COLOR', '1')
  expect(prefixOf(rank, ranks, { isTTY: true })).toBe(plain)
})

describe('the check whether an output still has a reader', () => {
  const status = (kind: string) =>
    vi.mocked(fstatSync).mockReturnValue({ isFIFO: () => kind === 'pipe', isSocket: () => kind === 'socket' } as never)
  const abort = () => new AbortController()
  beforeEach(() => {
    vi.useFakeTimers()
    vi.mocked(isHungUp).mockReset()
    vi.mocked(isHungUp).mockReturnValue(false)
  })

  test('is skipped for a file', async () => {
    status('file')
    await watchHangUp(7, abort().signal, () => undefined)
    expect([vi.mocked(isHungUp).mock.calls, vi.getTimerCount()]).toEqual([[], 0])
  })

  test.each(['pipe', 'socket'])('runs for a %s every 100 ms', async (kind) => {
    status(kind)
    const onHangUp = vi.fn()
    const timers = vi.spyOn(globalThis, 'setInterval')
    await watchHangUp(7, abort().signal, onHangUp)
    // The timer does not keep the process alive.
    const { value: timer } = timers.mock.results[0]!
    expect(timer.hasRef()).toBe(false)
    vi.advanceTimersByTime(200)
    expect(vi.mocked(isHungUp).mock.calls).toEqual([[7], [7], [7]])
    expect(onHangUp).not.toHaveBeenCalled()
    vi.mocked(isHungUp).mockReturnValue(true)
    vi.advanceTimersByTime(500)
    expect([onHangUp.mock.calls.length, vi.getTimerCount()]).toEqual([1, 0])
  })

  test('stops when it is cancelled', async () => {
    status('pipe')
    const [onHangUp, controller] = [vi.fn(), abort()]
    await watchHangUp(7, controller.signal, onHangUp)
    controller.abort()
    vi.mocked(isHungUp).mockReturnValue(true)
    vi.advanceTimersByTime(500)
    expect([onHangUp.mock.calls.length, vi.getTimerCount()]).toEqual([0, 0])
  })

  test('is not available without the addon', async () => {
    status('pipe')
    const error = new Error('no addon')
    vi.mocked(isHungUp).mockImplementation(() => {
      throw error
    })
    await expect(watchHangUp(7, abort().signal, () => undefined)).rejects.toBe(error)
    expect(vi.getTimerCount()).toBe(0)
  })
})
