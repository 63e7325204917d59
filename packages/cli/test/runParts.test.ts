import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { fstatSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Guard } from '../src/run/guard.js'
import { type RunOptions, readRunOptions } from '../src/run/options.js'
import { programOf } from '../src/run/program.js'
import { RankProcess, settled } from '../src/run/rank.js'
import { Supervisor } from '../src/run/supervisor.js'

vi.mock('node:child_process', async (original) => {
  const all = await original<typeof import('node:child_process')>()
  return { ...all, spawn: vi.fn(all.spawn) }
})
vi.mock('node:fs', async (original) => ({ ...(await original<object>()), fstatSync: vi.fn() }))

const spawned = vi.mocked(spawn)
const plainSpawn = spawned.getMockImplementation()!
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
  spawned.mockReset()
  spawned.mockImplementation(plainSpawn)
})

/** A process that the test controls. */
function child(pid: number | undefined) {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  const made = Object.assign(new EventEmitter(), { pid, unref: vi.fn(), ...streams })
  spawned.mockReturnValueOnce(made as never)
  return made
}

describe('the process of a rank', () => {
  const make = (stdin = false) => new RankProcess(3, 'program', ['a', 'b'], { A: '1' }, stdin)
  const kill = () => vi.spyOn(process, 'kill').mockReturnValue(true)

  test.each([
    [false, 'ignore'],
    [true, 'pipe'],
  ])('has a separate process group, and an input: %s', (stdin, first) => {
    const made = child(50)
    const one = make(stdin)
    const options = { env: { A: '1' }, stdio: [first, 'pipe', 'pipe'], detached: true }
    expect(spawned).toHaveBeenLastCalledWith('program', ['a', 'b'], options)
    expect(one).toMatchObject({ rank: 3, pid: 50, isRunning: true })
    expect([one.input, one.output, one.errors]).toEqual([made.stdin, made.stdout, made.stderr])
    one.closeOutput()
    expect([made.stdin, made.stdout, made.stderr].map(({ destroyed }) => destroyed)).toEqual([false, true, true])
  })

  test('ends with all processes it has started', async () => {
    const killed = kill()
    const made = child(50)
    const one = make()
    one.signal('SIGUSR2')
    one.signalGroup('SIGTERM')
    expect(killed.mock.calls).toEqual([
      [50, 'SIGUSR2'],
      [-50, 'SIGTERM'],
    ])
    let isClosed = false
    void one.closed.then(() => {
      isClosed = true
    })
    // The same error occurs if a signal cannot be sent.
    made.emit('error', new Error('no end'))
    await nextTurn()
    expect([one.isRunning, isClosed]).toEqual([true, false])
    made.emit('exit', 7, null)
    made.emit('exit', 8, null)
    expect(await one.ended).toEqual({ rank: 3, code: 7, signal: null })
    expect([one.isRunning, isClosed]).toEqual([false, false])
    expect(killed.mock.calls.slice(2)).toEqual([[-50, 'SIGKILL']])
    one.signal('SIGUSR2')
    expect(killed).toHaveBeenCalledTimes(3)
    made.emit('close')
    await one.closed
  })

  test('that does not start reports its end, and ignores signals', async () => {
    const killed = kill()
    const made = child(undefined)
    // The streams are undefined if no descriptors were left for them.
    Object.assign(made, { stdin: undefined, stdout: undefined, stderr: undefined })
    const one = make()
    const error = new Error('EMFILE')
    made.emit('error', error)
    expect(await one.ended).toEqual({ rank: 3, code: null, signal: null, error })
    await one.closed
    one.closeOutput()
    one.signalGroup('SIGTERM')
    expect([one.input, one.output, one.errors, killed.mock.calls]).toEqual([undefined, undefined, undefined, []])
  })

  test('ignores signals after its end, and rethrows a forbidden signal', () => {
    child(50)
    const one = make()
    const refuse = (code: string) =>
      vi.spyOn(process, 'kill').mockImplementation(() => {
        throw Object.assign(new Error(code), { code })
      })
    refuse('ESRCH')
    one.signal('SIGTERM')
    one.signalGroup('SIGTERM')
    refuse('EPERM')
    expect(() => one.signal('SIGTERM')).toThrow('EPERM')
  })
})

describe('the output of an ended rank', () => {
  /** Ends a rank. Times are in milliseconds after its end. Returns when its output is abandoned. */
  async function leave(closesAt: number, blockedAt: readonly number[]): Promise<number> {
    vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    let left: number | undefined
    const one = {
      ended: Promise.resolve() as never,
      closed: new Promise<void>((resolve) => setTimeout(resolve, closesAt)),
      closeOutput: () => {
        left = Date.now()
      },
    }
    void settled(one, () => blockedAt.includes(Date.now()))
    await vi.advanceTimersByTimeAsync(20_000)
    // The timer of the test, if the output closes later.
    expect(vi.getTimerCount()).toBe(closesAt > 20_000 ? 1 : 0)
    return left!
  }

  test.each([
    ['that closes ends the wait', 500, [], 500],
    ['that closes too late is dropped', 1e6, [], 2000],
    ['without a reader at first gets more time', 1e6, [0], 4000],
    ['without a reader at last gets more time', 1e6, [2000], 6000],
    ['without a reader for long gets more time', 1e6, [0, 4000], 8000],
    ['that closes within its extra time ends the wait', 5000, [0, 2000, 4000], 5000],
  ])('%s', async (_, closesAt, blockedAt, left) => {
    expect(await leave(closesAt, blockedAt)).toBe(left)
  })
})

describe('the guard process of shoal run', () => {
  test('has a separate session, receives the ranks, and ends with its input', async () => {
    const onFailure = vi.fn()
    const guard = new Guard('SHOAL_NOBODY=has this', onFailure)
    const options = { stdio: ['pipe', 'ignore', 'ignore'], detached: true, cwd: '/' }
    expect(spawned).toHaveBeenLastCalledWith(
      '/bin/sh',
      ['-c', expect.any(String), 'sh', 'SHOAL_NOBODY=has this'],
      options,
    )
    const process = spawned.mock.results[0]?.value as ChildProcess
    const write = vi.spyOn(process.stdin!, 'write')
    const exit = once(process, 'exit')
    // A number that no process can have.
    guard.add(2 ** 30)
    guard.remove(2 ** 30)
    guard.allStarted()
    expect(write.mock.calls.map(([text]) => text)).toEqual(['+ 1073741824\n', '- 1073741824\n', '.\n'])
    guard.close()
    process.ref()
    expect(await exit).toEqual([0, null])
    expect(onFailure).not.toHaveBeenCalled()
  })

  test('that cannot start is reported, unless the job is over', () => {
    const onFailure = vi.fn()
    const made = child(undefined)
    const guard = new Guard('A=b', onFailure)
    expect(made.unref).toHaveBeenCalledTimes(1)
    made.stdin.emit('error', new Error('nobody reads'))
    made.emit('error', new Error('no shell'))
    expect(onFailure.mock.calls).toEqual([['no shell']])
    guard.close()
    made.emit('error', new Error('too late'))
    expect(onFailure).toHaveBeenCalledTimes(1)
    expect(made.stdin.writableEnded).toBe(true)
  })

  test('that cannot start is ignored after the job is over', () => {
    const onFailure = vi.fn()
    const made = child(undefined)
    new Guard('A=b', onFailure).close()
    made.emit('error', new Error('no shell'))
    expect(onFailure).not.toHaveBeenCalled()
  })

  test('without descriptors reports nothing', () => {
    const made = child(undefined)
    Object.assign(made, { stdin: undefined })
    const guard = new Guard('A=b', () => undefined)
    guard.add(1)
    guard.remove(1)
    guard.allStarted()
    guard.close()
  })
})

describe('a job of shoal run', () => {
  /** Runs a shell in each of two ranks. */
  function job(script: string, changed: Partial<RunOptions> = {}) {
    vi.mocked(fstatSync).mockReturnValue({ isFIFO: () => false, isSocket: () => false } as never)
    const written = { output: '', errors: '' }
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => Boolean((written.output += String(text))))
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => Boolean((written.errors += String(text))))
    const options = { ...readRunOptions(['-n', '2', '--exec', '/bin/sh', '-c', script]), ...changed }
    const end = new Supervisor(options, programOf(options)).run()
    const until = (words: string) => vi.waitFor(() => expect(written.output.split(words)).toHaveLength(3), 60_000)
    return { written, end, until }
  }
  const ascending = (one: number, other: number): number => one - other
  const pidsIn = (text: string) => [...text.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid)).sort(ascending)

  test('reports its ranks to the guard, and leaves nothing in this process', async () => {
    const guard = (['add', 'remove', 'allStarted', 'close'] as const).map((name) => vi.spyOn(Guard.prototype, name))
    const abort = vi.spyOn(AbortController.prototype, 'abort')
    const timers = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')] as const
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGTSTP', 'SIGCONT']
    const listeners = () => [...signals, 'exit'].map((name) => process.listenerCount(name))
    const before = listeners()
    const { written, end, until } = job('echo pid $$; exec sleep 600', { grace: 5_432_100 })
    await until('pid')
    expect(listeners()).toEqual(before.map((count) => count + 1))
    process.emit('SIGTERM')
    expect(await end).toBe(143)
    const pids = pidsIn(written.output)
    const [added, removed, started, closed] = guard.map((spy) => spy.mock.calls.flat().sort(ascending as never))
    expect([added, removed]).toEqual([pids, pids])
    expect([started, closed, abort.mock.calls.length]).toEqual([[], [], 1])
    expect(guard.map((spy) => spy.mock.calls.length)).toEqual([2, 2, 1, 1])
    expect(listeners()).toEqual(before)
    const grace = timers[0].mock.calls.findIndex(([, milliseconds]) => milliseconds === 5_432_100)
    expect(timers[1].mock.calls.flat()).toContain(timers[0].mock.results[grace]?.value)
  })

  test('stops and continues with its terminal, and forwards program signals', async () => {
    const kill = process.kill.bind(process)
    const killed: unknown[][] = []
    vi.spyOn(process, 'kill').mockImplementation((pid, signal) => {
      killed.push([pid, signal])
      return pid === process.pid || signal === 'SIGUSR1' ? true : kill(pid, signal)
    })
    const { written, end, until } = job('echo pid $$; exec sleep 600')
    await until('pid')
    const pids = pidsIn(written.output)
    const groups = (signal: string) => pids.map((pid) => [-pid, signal])
    const sent = (signal: NodeJS.Signals) => {
      killed.splice(0)
      process.emit(signal)
      return killed.toSorted(([one], [other]) => Number(other) - Number(one))
    }
    expect(sent('SIGTSTP')).toEqual([[process.pid, 'SIGSTOP'], ...groups('SIGSTOP')])
    expect(sent('SIGCONT')).toEqual(groups('SIGCONT'))
    expect(sent('SIGUSR1')).toEqual(pids.map((pid) => [pid, 'SIGUSR1']).reverse())
    sent('SIGTERM')
    expect(await end).toBe(143)
    expect(written.errors).toBe('shoal run: got SIGTERM; the ranks are being ended\n')
  })

  test('passes its standard input to the first rank, and releases the input at the end', async () => {
    const input = new PassThrough()
    vi.spyOn(process, 'stdin', 'get').mockReturnValue(input as never)
    input.write('words\n')
    const { written, end } = job('read line; echo "$RANK reads $line"', { prefix: false, stdin: true })
    expect(await end).toBe(0)
    expect(written.output.split('\n').sort()).toEqual(['', '0 reads words', '1 reads '])
    // The input is still open: a program that continues to read would not end.
    expect([input.isPaused(), input.listenerCount('data')]).toEqual([true, 0])
  })

  test('does not read its standard input if no rank gets it', async () => {
    const get = vi.spyOn(process, 'stdin', 'get')
    const { written, end } = job('read line; echo "$RANK reads $line"')
    expect(await end).toBe(0)
    expect(written.output.split('\n').sort()).toEqual(['', '[0] 0 reads ', '[1] 1 reads '])
    expect(get).not.toHaveBeenCalled()
  })

  test('ends with this process, whatever ends the process', async () => {
    const before = process.listeners('exit')
    const { end, until } = job('echo pid $$; exec sleep 600')
    await until('pid')
    const [onExit] = process.listeners('exit').filter((one) => !before.includes(one))
    onExit?.(0)
    expect(await end).toBe(137)
  })

  test('starts no rank after a signal ended it', async () => {
    const on = process.on.bind(process)
    vi.spyOn(process, 'on').mockImplementation(((name: string, listener: () => void) => {
      if (name === 'SIGTERM') queueMicrotask(listener)
      return on(name, listener)
    }) as never)
    const { written, end } = job('echo pid $$')
    expect(await end).toBe(143)
    expect(written).toEqual({ output: '', errors: 'shoal run: got SIGTERM\n' })
    // Only the guard was started.
    expect(spawned).toHaveBeenCalledTimes(1)
  })

  test('runs without a guard', async () => {
    spawned.mockImplementationOnce((() => {
      const guard = Object.assign(new EventEmitter(), { unref: () => undefined })
      queueMicrotask(() => void guard.emit('error', new Error('no shell')))
      return guard
    }) as never)
    const { written, end } = job('exit 0')
    expect(await end).toBe(0)
    expect(written.errors).toBe('shoal run: no guard against a killed shoal run: no shell\n')
  })
})
