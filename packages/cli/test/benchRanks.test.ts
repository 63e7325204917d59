import { Device, DeviceBuffer, Module, Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { bootstrap } from '@shoal/launch'
import { Communicator, NcclMemory, UniqueId } from '@shoal/nccl'
import { UniqueId as PeId, Session } from '@shoal/nvshmem'
import { AbortedError, ShoalError } from '@shoal/types'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { BenchData } from '../src/bench/collectives/data.js'
import { measureCollective, variantsOf } from '../src/bench/collectives/measure.js'
import { type Operation, operations, prepareCall, prepareStart } from '../src/bench/collectives/operations.js'
import { connect, disconnect, type Rank, waitForRanks } from '../src/bench/collectives/ranks.js'
import { benchCommand, optionsOf } from '../src/bench/command.js'
import type { CollectiveRow } from '../src/bench/figures.js'
import { benchNvshmem, nvshmemTests } from '../src/bench/nvshmem/bench.js'
import { joinAsPe, runAsPe, startPes } from '../src/bench/nvshmem/pes.js'
import { type BenchOptions, firstRunsOf, readOptions } from '../src/bench/options.js'
import { joinRankGroup, type RankGroup } from '../src/bench/rankGroup.js'
import { Output } from '../src/bench/report/output.js'
import { UsageError } from '../src/command.js'
import { runCommand } from '../src/run/command.js'

// Whether this process is a rank is for each test to say.
vi.mock('@shoal/launch', async (original) => ({ ...(await original<object>()), bootstrap: vi.fn() }))

useSoftwareDevice({ devices: 2 })
const read = (...words: string[]): BenchOptions => readOptions([...words, '--device', 'sim'], optionsOf)
const nothing = async (): Promise<void> => undefined

/** What `bootstrap()` gives. */
function job(launcher: string, changed: object = {}) {
  const lost = new AbortController().signal
  const one = {
    ...{ launcher, rank: 1, worldSize: 2, deviceOrdinal: 1, lost, dispose: vi.fn(nothing) },
    share: vi.fn(async (_: string, make: () => Uint8Array) => make()),
    gather: vi.fn(async (_: string, bytes: Uint8Array) => [Buffer.from('2.5'), bytes, Buffer.from('1')]),
    ...changed,
  }
  vi.mocked(bootstrap).mockResolvedValue(one as never)
  return one
}
beforeEach(() => void job('single'))
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

describe('ranks', () => {
  test('are all devices of a process that nobody has started as one', async () => {
    const { dispose } = job('single')
    const group = await joinRankGroup(read('all-reduce'))
    expect(group).toMatchObject({ worldSize: 2, processes: 1, isRank: false, isFirst: true, lost: undefined })
    expect(group.ranks).toEqual([0, 1].map((rank) => ({ rank, device: Device.get(rank) })))
    expect(await group.share('x', () => Uint8Array.of(1))).toEqual(Uint8Array.of(1))
    expect(await group.sum(3)).toBe(3)
    expect([await group.barrier(), await group.leave()]).toEqual([undefined, undefined])
    expect(dispose).toHaveBeenCalledTimes(1)
  })

  test('are as many as were asked for', async () => {
    const some = await joinRankGroup(read('all-reduce', '-g', '1'))
    expect([some.worldSize, some.ranks.map(({ rank }) => rank)]).toEqual([1, [0]])
    expect((await joinRankGroup(read('all-reduce', '-g', '2'))).worldSize).toBe(2)
    await expect(joinRankGroup(read('all-reduce', '-g', '3'))).rejects.toThrow('--devices 3: this machine has 2')
    vi.spyOn(Device, 'all').mockReturnValue([])
    await expect(joinRankGroup(read('all-reduce'))).rejects.toThrow(new UsageError('there is no device'))
  })

  test('of a job have the device that the job says, and what they share goes through it', async () => {
    const { lost, share, gather, dispose } = job('shoal')
    const group = await joinRankGroup(read('all-reduce', '--timeout', '7'))
    expect(group).toMatchObject({ worldSize: 2, processes: 2, isRank: true, isFirst: false, lost })
    expect(group.ranks).toEqual([{ rank: 1, device: Device.get(1) }])
    const waiting = { timeout: 7000, signal: lost }
    const make = () => Uint8Array.of(1)
    expect(await group.share('x', make)).toEqual(Uint8Array.of(1))
    expect(share).toHaveBeenCalledWith('x', make, waiting)
    expect(await group.sum(4.5)).toBe(8)
    expect(gather).toHaveBeenLastCalledWith('bench 1', Buffer.from('4.5'), waiting)
    await group.barrier()
    expect(gather).toHaveBeenLastCalledWith('bench 2', Buffer.from('0'), waiting)
    expect(dispose).not.toHaveBeenCalled()
    await group.leave()
    expect(dispose).toHaveBeenCalledTimes(1)
    job('shoal', { rank: 0, deviceOrdinal: 0 })
    expect((await joinRankGroup(read('all-reduce'))).isFirst).toBe(true)
  })

  test('of a job without a device for each say so, and leave', async () => {
    const { dispose } = job('shoal', { rank: 3, deviceOrdinal: 2 })
    const words = 'rank 3 takes device 2: this machine has 2, and no two ranks share one'
    await expect(joinRankGroup(read('all-reduce'))).rejects.toThrow(new UsageError(words))
    expect(dispose).toHaveBeenCalledTimes(1)
  })
})

/** A group of the ranks that this process drives, which is one of `processes`. */
function groupOf(ranks: readonly number[], changed: Partial<RankGroup> = {}): RankGroup {
  return {
    ...{ worldSize: ranks.length, processes: 1, isRank: false, isFirst: true, lost: undefined },
    ranks: ranks.map((rank) => ({ rank, device: Device.get(rank) })),
    share: async (_, make) => make(),
    sum: async (value) => value,
    barrier: nothing,
    leave: nothing,
    ...changed,
  }
}

describe('what ranks work with', () => {
  test('is as large as the largest message, begins with zeros, and is given back', async () => {
    const fill = vi.spyOn(DeviceBuffer.prototype, 'fillSync')
    const ranks = await connect(groupOf([0, 1]), read('all-reduce', '-e', '100'))
    expect(ranks.map(({ rank }) => rank)).toEqual([0, 1])
    expect(ranks.map(({ communicator }) => [communicator.rank, communicator.worldSize])).toEqual([
      [0, 2],
      [1, 2],
    ])
    expect(ranks.flatMap(({ send, recv }) => [send.length, recv.length])).toEqual([100, 100, 100, 100])
    expect(fill.mock.calls.filter(([value]) => value === 0)).toHaveLength(4)
    const buffers = ranks.flatMap(({ send, recv, stream }) => [send, recv, stream])
    const [memory, kernels] = [vi.spyOn(NcclMemory.prototype, 'dispose'), vi.spyOn(Module.prototype, 'dispose')]
    await disconnect(ranks, 'destroy')
    expect(buffers.every(({ disposed }) => disposed)).toBe(true)
    expect([memory, kernels].map((spy) => spy.mock.calls.length)).toEqual([4, 2])
    expect(ranks.every(({ communicator }) => communicator.disposed)).toBe(true)
  })

  test('has nothing to compare with where nothing is compared', async () => {
    const load = vi.spyOn(Module, 'loadSync')
    const ranks = await connect(groupOf([0]), read('all-reduce', '-e', '8', '-c', '0'))
    expect([ranks[0]?.kernels, load.mock.calls.length]).toEqual([undefined, 0])
    await disconnect(ranks, 'abort')
  })

  test('is joined with the other processes by the id of the first', async () => {
    const init = vi.spyOn(Communicator, 'initRank').mockResolvedValue({} as never)
    const lost = new AbortController().signal
    const share = vi.fn(async (_: string, make: () => Uint8Array) => make())
    const group = groupOf([1], { isRank: true, worldSize: 3, lost, share })
    const [rank] = await connect(group, read('all-reduce', '-e', '8', '--timeout', '9'))
    expect(share).toHaveBeenCalledWith('nccl', expect.any(Function))
    const told = { device: Device.get(1), rank: 1, worldSize: 3, signal: lost, timeout: 9000 }
    expect(init).toHaveBeenCalledWith({ ...told, id: expect.any(UniqueId) })
    expect(rank?.communicator).toBe(await init.mock.results[0]?.value)
    for (const one of rank!.owned) one[Symbol.dispose]()
  })
})

describe('a wait for ranks', () => {
  /** A rank whose stream is done at the look of that number, and what is called of it. */
  function rank(doneAt: number, wait: Promise<unknown> = Promise.resolve()) {
    let looks = 0
    const query = vi.fn(() => {
      if (looks > 1000) throw new Error('nobody lets others work')
      looks += 1
      return looks >= doneAt
    })
    const synchronize = vi.fn(() => wait)
    const stream = { query }
    return { query, synchronize, stream, rank: { communicator: { synchronize }, stream } as unknown as Rank }
  }
  const options = { ...read('all-reduce', '--timeout', '3'), software: false }
  let now = 0
  let milliseconds = 0
  beforeEach(() => {
    now = 0
    milliseconds = 0
    vi.spyOn(performance, 'now').mockImplementation(() => milliseconds)
    vi.spyOn(process.hrtime, 'bigint').mockImplementation(() => BigInt((now += 1)))
  })

  test.each([1, 2, 500])('that is short looks %d times, and wakes no thread', async (doneAt) => {
    const one = rank(doneAt)
    expect(await waitForRanks([one.rank], options)).toBe(1n)
    expect(one.query).toHaveBeenCalledTimes(doneAt)
    expect(one.synchronize).not.toHaveBeenCalled()
  })

  test('looks for 20 ms', async () => {
    vi.mocked(performance.now).mockImplementation(() => milliseconds++)
    const one = rank(Number.POSITIVE_INFINITY)
    await waitForRanks([one.rank], { ...options, software: true })
    expect(one.query).toHaveBeenCalledTimes(20)
    expect(one.synchronize).toHaveBeenCalledWith(one.stream, { timeout: 3000 })
  })

  test('that is long ends when a look says so, before the thread that waits has noticed', async () => {
    let notice: () => void = () => undefined
    vi.mocked(performance.now).mockImplementation(() => (milliseconds += 30))
    const long = rank(
      4,
      new Promise<void>((resolve) => {
        notice = resolve
      }),
    )
    const short = rank(1)
    let done: bigint | undefined
    const wait = waitForRanks([long.rank, short.rank], options).then((moment) => {
      done = moment
    })
    await vi.waitFor(() => expect(short.query).toHaveBeenCalledTimes(1))
    expect([long.query.mock.calls.length, long.synchronize.mock.calls.length]).toEqual([4, 1])
    await new Promise((resolve) => setImmediate(resolve))
    // The moment is taken, and what the thread has to say is waited for all the same.
    expect([now, done]).toEqual([1, undefined])
    notice()
    await wait
    expect(done).toBe(1n)
  })

  test('lets others work between two looks', async () => {
    vi.mocked(performance.now).mockImplementation(() => (milliseconds += 30))
    let hasWorked = false
    setImmediate(() => {
      hasWorked = true
    })
    const one = rank(0, new Promise((resolve) => setImmediate(resolve)))
    one.query.mockImplementation(() => {
      if (one.query.mock.calls.length > 100_000) throw new Error('nobody else works')
      return hasWorked
    })
    await waitForRanks([one.rank], options)
    expect(one.synchronize).toHaveBeenCalledTimes(1)
  })

  test.each([true, false])('throws what the wait is told, on the software device: %s', async (software) => {
    vi.mocked(performance.now).mockImplementation(() => (milliseconds += 30))
    const lost = new Error('a rank is lost')
    const one = rank(Number.POSITIVE_INFINITY, new Promise((_, reject) => setImmediate(() => reject(lost))))
    await expect(waitForRanks([one.rank], { ...options, software })).rejects.toBe(lost)
  })

  test('on the software device asks no more', async () => {
    vi.mocked(performance.now).mockImplementation(() => (milliseconds += 30))
    const one = rank(9, new Promise<void>((resolve) => setImmediate(resolve)))
    expect(await waitForRanks([one.rank], { ...options, software: true })).toBe(1n)
    expect(one.query).toHaveBeenCalledTimes(1)
  })
})

describe('measurements', () => {
  const gather = operations.find(({ name }) => name === 'all-gather')!
  const variant = { type: 'f32', op: 'sum', root: 0 } as const

  /** All-gather, and the numbers of calls of its first rank before each row and after the last. */
  async function measure(options: BenchOptions, changed: Partial<Operation> = {}, group = groupOf([0])) {
    let calls = 0
    const counts: number[] = []
    const { prepare: _, ...plain } = gather
    const operation: Operation = {
      ...plain,
      bind: (...operands) => {
        const call = gather.bind(...operands)
        return () => {
          calls += 1
          call()
        }
      },
      ...changed,
    }
    const rows: CollectiveRow[] = []
    const all = await measureCollective(operation, [variant], group, options, (row) => {
      rows.push(row)
      counts.push(calls)
    })
    expect(all).toEqual(rows)
    return { rows, counts }
  }

  test('warm up before each size, and longer before the first in each place', async () => {
    const options = read('all-gather', '-b', '256K', '-e', '512K', '-n', '3', '-w', '2', '-c', '0')
    const { rows, counts } = await measure(options)
    expect(rows.map(({ bytes, count }) => [bytes, count])).toEqual([
      [2 ** 18, 2 ** 16],
      [2 ** 19, 2 ** 17],
    ])
    const first = 2 * (firstRunsOf(2 ** 18) + 2 + 3)
    expect(counts).toEqual([first, first + 2 * (2 + 3)])
    // The results are those of one more.
    const checked = await measure({ ...options, check: true, inPlace: 'out' })
    expect(checked.counts).toEqual([first / 2 + 1, first / 2 + 1 + 2 + 3 + 1])
    expect(checked.rows.map(({ outOfPlace, inPlace }) => [outOfPlace?.wrong, inPlace])).toEqual([
      [0, null],
      [0, null],
    ])
  })

  test('on a GPU warm up for 50 ms at first and for 5 ms later, by the mean of all processes', async () => {
    const options = { ...read('all-gather', '-b', '1M', '-e', '2M', '-n', '3', '-w', '2'), software: false }
    for (const [each, first, second] of [
      // Each of 5 takes 2 ms here, and 4 ms as a mean.
      [2, 13, 2],
      [5, 5, 1],
      // Less than any clock can tell.
      [0, 5000, 5000],
    ] as const) {
      let calls = 0
      vi.spyOn(performance, 'now').mockImplementation(() => calls * each)
      const { prepare: _, ...plain } = gather
      const operation: Operation = {
        ...plain,
        bind: (...operands) => {
          const call = gather.bind(...operands)
          return () => {
            calls += 1
            // So many of them need not move anything.
            if (calls < 10) call()
          }
        },
      }
      const group = groupOf([0], { processes: 3, sum: async (value) => value * 6 })
      const counts: number[] = []
      const asked = { ...options, check: false, inPlace: 'in' } as const
      await measureCollective(operation, [variant], group, asked, () => counts.push(calls))
      const [atFirst = 0, later = 0] = counts
      expect([atFirst - firstRunsOf(2 ** 20), later - atFirst].map((count) => count - 2 - 5 - 3)).toEqual([
        first,
        second,
      ])
      vi.restoreAllMocks()
    }
  })

  test('of sizes that have no element are none, and the same number of elements is measured once', async () => {
    const options = read('all-gather', '-b', '1', '-e', '9', '-i', '1', '-n', '1', '-w', '0')
    const { rows } = await measure(options)
    expect(rows.map(({ bytes }) => bytes)).toEqual([4, 8])
    expect((await measure({ ...options, sweep: { ...options.sweep, most: 3 } })).rows).toEqual([])
  })

  test('see what stays as it was', async () => {
    const idle: Partial<Operation> = { bind: () => () => undefined }
    const options = read('all-gather', '-b', '64', '-e', '64', '-n', '1', '-w', '0', '--in-place', 'out')
    const { rows } = await measure(options, idle, groupOf([0, 1]))
    // The elements of both ranks, in two parts each, of which all are wrong.
    expect(rows[0]?.outOfPlace?.wrong).toBe(32)
  })

  test('that fail abort, tell of further errors, and throw the first', async () => {
    const fault = new Error('a fault')
    vi.spyOn(BenchData.prototype, 'wrong').mockRejectedValue(fault)
    const print = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const abort = vi.spyOn(Communicator.prototype, 'abort')
    const options = read('all-gather', '-b', '64', '-e', '64', '-n', '1', '-w', '0')
    await expect(measure(options)).rejects.toBe(fault)
    expect([abort.mock.calls.length, print.mock.calls.length]).toEqual([1, 0])
    abort.mockRejectedValueOnce(new Error('and another'))
    await expect(measure(options)).rejects.toBe(fault)
    expect(print.mock.calls).toEqual([['shoal bench: Error: and another']])
  })

  test('of one rank work, those that send to themselves, too', async () => {
    const options = read('all-gather', '-b', '64', '-e', '64', '-n', '1', '-w', '0')
    for (const operation of operations) {
      const [row] = await measureCollective(operation, [variant], groupOf([0]), options, () => undefined)
      expect([operation.name, row?.outOfPlace?.wrong]).toEqual([operation.name, 0])
    }
  })
})

describe('operations', () => {
  test('give their calls what they take, and no more', () => {
    const stream = {} as Stream
    const call = { communicator: {}, send: {}, recv: {}, stream, op: 'max', root: 3 } as never
    for (const operation of operations) {
      const bind = vi.fn(() => () => undefined)
      prepareCall({ ...operation, bind }, call)
      const { reduces, rooted } = operation
      expect(bind).toHaveBeenCalledWith(
        {},
        {},
        {},
        {
          stream,
          ...(reduces && { op: 'max' }),
          ...(rooted && { root: 3 }),
        },
      )
    }
  })

  test('that one rank starts alone are in no group', () => {
    const launch = vi.fn()
    const [operation] = operations as [Operation]
    const call = { communicator: {}, send: {}, recv: {}, stream: {}, op: 'sum', root: 0 } as never
    prepareStart({ ...operation, prepare: () => ({ launch }) as never }, [call])()
    expect(launch).toHaveBeenCalledTimes(1)
  })

  test('have variants of all that was asked for and means something', () => {
    const all = read('reduce', '-d', 'f32,f16', '-o', 'max,sum', '-r', 'all')
    const named = (name: string) => operations.find((one) => one.name === name)!
    const variants = (name: string, root = -1) =>
      variantsOf(named(name), 2, { ...all, root }).map(({ type, op, root }) => `${type} ${op} ${root}`)
    expect(variants('reduce')).toEqual(
      ['f32', 'f16'].flatMap((type) => ['max', 'sum'].flatMap((op) => [0, 1].map((root) => `${type} ${op} ${root}`))),
    )
    expect(variants('reduce', 1)).toEqual(['f32 max 1', 'f32 sum 1', 'f16 max 1', 'f16 sum 1'])
    expect(variants('all-reduce')).toEqual(['f32 max 0', 'f32 sum 0', 'f16 max 0', 'f16 sum 0'])
    expect(variants('broadcast')).toEqual(['f32 sum 0', 'f32 sum 1', 'f16 sum 0', 'f16 sum 1'])
    expect(variants('all-gather', 7)).toEqual(['f32 sum 0', 'f16 sum 0'])
    const sized = (name: string, most: number) => () =>
      variantsOf(named(name), 2, { ...all, sweep: { ...all.sweep, most } })
    for (const [name, most] of [
      ['reduce', 4],
      ['all-gather', 8],
      ['reduce-scatter', 8],
    ] as const) {
      expect(sized(name, most)).not.toThrow()
      expect(sized(name, most - 1)).toThrow(
        `--max-bytes ${most - 1} is less than one element of f32 for each rank: ${most} bytes`,
      )
    }
  })
})

describe('PEs', () => {
  test('are started by a command of their own: one for each device, or as many as were asked for', async () => {
    const run = vi.spyOn(runCommand, 'run').mockResolvedValue(7)
    vi.stubEnv('NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME', undefined)
    for (const words of [[], ['-g', '2']]) {
      expect(await startPes(['put', '-b', '8'], read('put', ...words))).toBe(7)
      const program = expect.stringMatching(/\/bin\/shoal\.js$/)
      expect(run).toHaveBeenLastCalledWith(['-n', '2', '--no-prefix', program, 'bench', 'put', '-b', '8'])
    }
    expect(process.env['NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME']).toBe('lo')
    vi.stubEnv('NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME', 'eth7')
    await startPes([], read('put'))
    expect(process.env['NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME']).toBe('eth7')
    await expect(startPes([], read('put', '-g', '3'))).rejects.toThrow('--devices 3: this machine has 2')
    await expect(startPes([], read('put', '-g', '1'))).rejects.toThrow('NVSHMEM between PEs needs two devices')
  })

  test('are started where this process is none', async () => {
    const { dispose } = job('single')
    const run = vi.spyOn(runCommand, 'run').mockResolvedValue(0)
    expect(await benchNvshmem(read('barrier'), ['barrier'])).toBe(0)
    expect([run.mock.calls.length, dispose.mock.calls.length]).toEqual([1, 1])
    expect(await joinAsPe(read('barrier'))).toBeUndefined()
    job('shoal')
    expect(await joinAsPe(read('barrier'))).toMatchObject({ isRank: true })
    expect(nvshmemTests).toEqual(['put', 'get', 'atomic', 'barrier'])
  })

  test.each(['put', 'get', 'atomic'])('%s is between two', async (name) => {
    const { dispose } = job('shoal', { rank: 0, worldSize: 1, deviceOrdinal: 0 })
    await expect(benchNvshmem(read(name), [])).rejects.toThrow(`${name} is between two PEs: this job has one rank`)
    expect(dispose).toHaveBeenCalledTimes(1)
  })

  /** NVSHMEM that does nothing. */
  function made() {
    const session = { finalize: vi.fn(nothing), abandon: vi.fn() }
    const init = vi.spyOn(Session, 'init').mockResolvedValue(session as never)
    vi.spyOn(PeId, 'create').mockReturnValue({ toBytes: () => new Uint8Array(128) } as never)
    vi.spyOn(PeId, 'fromBytes').mockImplementation((bytes) => ({ bytes }) as never)
    return { session, init }
  }

  test('begin with what the first one shares, and end together', async () => {
    const { session, init } = made()
    const lost = new AbortController().signal
    const share = vi.fn(async (_: string, make: () => Uint8Array) => make())
    const group = groupOf([1], { worldSize: 2, lost, share })
    const dispose = vi.spyOn(Stream.prototype, 'dispose')
    expect(
      await runAsPe(read('put', '--timeout', '8'), group, async (pe) => {
        expect(pe).toMatchObject({ rankGroup: group, session })
        expect([session.finalize.mock.calls.length, dispose.mock.calls.length]).toEqual([0, 0])
        return 'result'
      }),
    ).toBe('result')
    expect(share).toHaveBeenCalledWith('nvshmem', expect.any(Function))
    const told = { device: Device.get(1), rank: 1, worldSize: 2, timeout: 8000, defaultTimeout: 8000, signal: lost }
    expect(init).toHaveBeenCalledWith({ ...told, id: { bytes: new Uint8Array(128) } })
    expect([session.finalize, session.abandon, dispose].map((spy) => spy.mock.calls.length)).toEqual([1, 0, 1])
    await runAsPe(read('put'), groupOf([1]), nothing)
    expect(init.mock.lastCall?.[0]).not.toHaveProperty('signal')
  })

  test('that fail wait for nobody', async () => {
    const { session } = made()
    const dispose = vi.spyOn(Stream.prototype, 'dispose')
    const fault = new Error('a fault')
    await expect(runAsPe(read('put'), groupOf([1]), () => Promise.reject(fault))).rejects.toBe(fault)
    expect([session.finalize, session.abandon, dispose].map((spy) => spy.mock.calls.length)).toEqual([0, 1, 1])
  })

  test.each([
    // Two messages, and 64 MiB that NVSHMEM uses, in 1 GiB that it has by itself.
    [480 * 2 ** 20, undefined],
    [480 * 2 ** 20 + 1, String(2 ** 30 + 2)],
  ])('have a heap for the largest message, here of %d bytes', async (most, size) => {
    made()
    vi.stubEnv('NVSHMEM_SYMMETRIC_SIZE', undefined)
    await runAsPe(read('put', '-e', String(most)), groupOf([0]), nothing)
    expect(process.env['NVSHMEM_SYMMETRIC_SIZE']).toBe(size)
    vi.stubEnv('NVSHMEM_SYMMETRIC_SIZE', '5')
    await runAsPe(read('put', '-e', String(most)), groupOf([0]), nothing)
    expect(process.env['NVSHMEM_SYMMETRIC_SIZE']).toBe('5')
  })

  test('tell what they measure, and leave the job', async () => {
    made()
    const { dispose } = job('shoal', { rank: 0, worldSize: 1, deviceOrdinal: 0 })
    const open = vi.spyOn(Output, 'open').mockRejectedValue(new Error('no output'))
    await expect(benchNvshmem(read('barrier'), [])).rejects.toThrow('no output')
    const library = { name: 'NVSHMEM', version: expect.stringMatching(/^\d+\.\d+/) }
    expect(open.mock.lastCall?.slice(1)).toEqual([library, read('barrier'), expect.any(Array)])
    expect(dispose).toHaveBeenCalledTimes(1)
  })
})

describe('the command', () => {
  class Fault extends ShoalError {
    readonly code = 'SHOAL_FAULT'
  }

  /** What a benchmark comes to that ends at its first step. */
  async function failWith(fault: unknown, ...words: string[]) {
    vi.spyOn(Device, 'all').mockImplementation(() => {
      throw fault
    })
    const print = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const end = await benchCommand.run(words).catch((error: unknown) => error)
    return { end, told: print.mock.calls.flat() }
  }

  test.each([
    [new Fault('no library'), 'no library'],
    [new AbortedError({ cause: new Fault('rank 3 is lost') }), 'rank 3 is lost'],
    [new Fault('outer', { cause: new Fault('inner') }), 'outer'],
  ])('tells of %s in a line', async (fault, words) => {
    expect(await failWith(fault, 'calls')).toEqual({ end: 1, told: [`shoal bench: ${words}`] })
  })

  test('tells of a wait that was aborted for another reason', async () => {
    const { end, told } = await failWith(new AbortedError({ cause: new Error('enough') }), 'calls')
    expect([end, told]).toEqual([
      1,
      [expect.stringMatching(/^shoal bench: The wait was aborted by its signal.*enough/)],
    ])
  })

  test('throws what is no error of Shoal', async () => {
    const fault = new TypeError('a fault')
    expect(await failWith(fault, 'calls')).toEqual({ end: fault, told: [] })
  })

  test.each([
    [['--device', 'sim'], undefined, undefined, 'sim', undefined],
    [['--device', 'sim', '-g', '3'], undefined, undefined, 'sim', '3'],
    [['--device', 'sim', '-g', '1'], undefined, undefined, 'sim', '2'],
    [['--device', 'sim', '-g', '3'], undefined, '8', 'sim', '8'],
    [['-g', '3'], 'sim', undefined, 'sim', '3'],
    [['-g', '3'], undefined, undefined, undefined, undefined],
    [['--device', 'gpu', '-g', '3'], 'sim', undefined, undefined, undefined],
    [['--device', 'gpu'], 'other', undefined, 'other', undefined],
  ])('%j, where SHOAL_DEVICE is %s and SHOAL_SIM_DEVICES %s', async (words, device, devices, ...expected) => {
    vi.stubEnv('SHOAL_DEVICE', device)
    vi.stubEnv('SHOAL_SIM_DEVICES', devices)
    await failWith(new Fault(''), 'all-reduce', ...words)
    expect([process.env['SHOAL_DEVICE'], process.env['SHOAL_SIM_DEVICES']]).toEqual(expected)
  })
})
