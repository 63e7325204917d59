import { Device, DeviceBuffer, Module } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { Communicator, NcclMemory, UniqueId } from '@shoal/nccl'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { connect, disconnect, type Rank, waitForRanks } from '../src/bench/collectives/ranks.js'
import { joinRankGroup } from '../src/bench/rankGroup.js'
import { UsageError } from '../src/command.js'
import { groupOf, job, read } from './support/bench.js'

// Each test sets whether this process is a rank.
vi.mock('@shoal/launch', async (original) => ({ ...(await original<object>()), bootstrap: vi.fn() }))

useSoftwareDevice({ devices: 2 })
beforeEach(() => void job('single'))
afterEach(() => {
  vi.restoreAllMocks()
})

describe('ranks of shoal bench', () => {
  test('without a launcher are all devices of the process', async () => {
    const { dispose } = job('single')
    const group = await joinRankGroup(read('all-reduce'))
    expect(group).toMatchObject({ worldSize: 2, processes: 1, isRank: false, isFirst: true, lost: undefined })
    expect(group.ranks).toEqual([0, 1].map((rank) => ({ rank, device: Device.get(rank) })))
    expect(await group.share('x', () => Uint8Array.of(1))).toEqual(Uint8Array.of(1))
    expect(await group.sum(3)).toBe(3)
    expect([await group.barrier(), await group.leave()]).toEqual([undefined, undefined])
    expect(dispose).toHaveBeenCalledTimes(1)
  })

  test('have the requested number', async () => {
    const some = await joinRankGroup(read('all-reduce', '-g', '1'))
    expect([some.worldSize, some.ranks.map(({ rank }) => rank)]).toEqual([1, [0]])
    expect((await joinRankGroup(read('all-reduce', '-g', '2'))).worldSize).toBe(2)
    await expect(joinRankGroup(read('all-reduce', '-g', '3'))).rejects.toThrow('--devices 3: this machine has 2')
    vi.spyOn(Device, 'all').mockReturnValue([])
    await expect(joinRankGroup(read('all-reduce'))).rejects.toThrow(new UsageError('there is no device'))
  })

  test('under shoal run use the device of the job, and share data through the job', async () => {
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

  test('under shoal run without a device for each rank leave with a usage error', async () => {
    const { dispose } = job('shoal', { rank: 3, deviceOrdinal: 2 })
    const words = 'rank 3 takes device 2: this machine has 2, and no two ranks share one'
    await expect(joinRankGroup(read('all-reduce'))).rejects.toThrow(new UsageError(words))
    expect(dispose).toHaveBeenCalledTimes(1)
  })
})

describe('resources of a rank in shoal bench', () => {
  test('have room for the largest message, start zeroed, and are freed', async () => {
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

  test('include no expected data if results are not checked', async () => {
    const load = vi.spyOn(Module, 'loadSync')
    const ranks = await connect(groupOf([0]), read('all-reduce', '-e', '8', '-c', '0'))
    expect([ranks[0]?.kernels, load.mock.calls.length]).toEqual([undefined, 0])
    await disconnect(ranks, 'abort')
  })

  test('connect to the other processes by the id of the first', async () => {
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

describe('a wait for ranks in shoal bench', () => {
  /** A rank whose stream is done at the given query, and its recorded calls. */
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

  test.each([1, 2, 500])('polls %d times for short work, and wakes no thread', async (doneAt) => {
    const one = rank(doneAt)
    expect(await waitForRanks([one.rank], options)).toBe(1n)
    expect(one.query).toHaveBeenCalledTimes(doneAt)
    expect(one.synchronize).not.toHaveBeenCalled()
  })

  test('polls for 20 ms', async () => {
    vi.mocked(performance.now).mockImplementation(() => milliseconds++)
    const one = rank(Number.POSITIVE_INFINITY)
    await waitForRanks([one.rank], { ...options, software: true })
    expect(one.query).toHaveBeenCalledTimes(20)
    expect(one.synchronize).toHaveBeenCalledWith(one.stream, { timeout: 3000 })
  })

  test('ends after long work as soon as polling sees it, before the waiting thread does', async () => {
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
    // The time is recorded, but the thread's result is still awaited.
    expect([now, done]).toEqual([1, undefined])
    notice()
    await wait
    expect(done).toBe(1n)
  })

  test('lets other code run between two polls', async () => {
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

  test.each([true, false])('rejects with the error of the wait, on the software device: %s', async (software) => {
    vi.mocked(performance.now).mockImplementation(() => (milliseconds += 30))
    const lost = new Error('a rank is lost')
    const one = rank(Number.POSITIVE_INFINITY, new Promise((_, reject) => setImmediate(() => reject(lost))))
    await expect(waitForRanks([one.rank], { ...options, software })).rejects.toBe(lost)
  })

  test('does not poll on the software device', async () => {
    vi.mocked(performance.now).mockImplementation(() => (milliseconds += 30))
    const one = rank(9, new Promise<void>((resolve) => setImmediate(resolve)))
    expect(await waitForRanks([one.rank], { ...options, software: true })).toBe(1n)
    expect(one.query).toHaveBeenCalledTimes(1)
  })
})
