import { Device, DeviceBuffer, Kernel, Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { afterEach, expect, test, vi } from 'vitest'
import { measureCollective } from '../src/bench/collectives/measure.js'
import { operations } from '../src/bench/collectives/operations.js'
import { optionsOf } from '../src/bench/command.js'
import { callsPerBurst, makeDriverCalls, timeOfCall } from '../src/bench/driverCalls.js'
import { barrierTest } from '../src/bench/nvshmem/barriers.js'
import type { Pe } from '../src/bench/nvshmem/pes.js'
import { readOptions } from '../src/bench/options.js'
import { headLines } from '../src/bench/report/columns.js'
import { timeOf, timeOfAwaited } from '../src/bench/timing.js'

useSoftwareDevice({ devices: 2 })

/** Whatever is timed takes 6 ms. */
function sixMilliseconds(): void {
  let now = 0n
  vi.spyOn(process.hrtime, 'bigint').mockImplementation(() => {
    now += 6_000_000n
    return now
  })
}

afterEach(() => void vi.restoreAllMocks())

test('a loop gives the time of one call, without the warm-ups', async () => {
  sixMilliseconds()
  const counts: number[] = []
  expect(timeOf(4, 3, (count) => void counts.push(count))).toBe(1500)
  expect(await timeOfAwaited(5, 2, async (count) => counts.push(count))).toBe(1200)
  expect(timeOf(2, 0, (count) => void counts.push(count))).toBe(3000)
  expect(counts).toEqual([3, 4, 2, 5, 2])
})

/** Three processes, of which the others take twice as long as this one. */
function groupOfThree(own: number[]) {
  const sum = async (value: number): Promise<number> => {
    own.push(value)
    return value * 5
  }
  return {
    worldSize: 2,
    processes: 3,
    isRank: false,
    isFirst: true,
    lost: undefined,
    share: async (_: string, make: () => Uint8Array) => make(),
    sum,
    barrier: async () => undefined,
    leave: async () => undefined,
  }
}

test('the time of a collective is the mean over iterations and processes', async () => {
  const own: number[] = []
  const ranks = [0, 1].map((rank) => ({ rank, device: Device.get(rank) }))
  const words = [
    'all-reduce',
    '-n',
    '4',
    '-w',
    '0',
    '-c',
    '0',
    '-b',
    '1K',
    '-e',
    '1K',
    '-d',
    'f32',
    '--in-place',
    'out',
  ]
  const options = readOptions(words, optionsOf)
  const operation = operations.find(({ name }) => name === 'all-reduce')!
  sixMilliseconds()
  const rows = await measureCollective(
    operation,
    [{ type: 'f32', op: 'sum', root: 0 }],
    { ...groupOfThree(own), ranks },
    options,
    () => undefined,
  )
  expect(own).toEqual([1500])
  expect(rows.map(({ outOfPlace }) => outOfPlace)).toEqual([
    { microseconds: 2500, algorithmBandwidth: 1024 / 2500 / 1000, busBandwidth: 1024 / 2500 / 1000, wrong: null },
  ])
})

test('the time of a barrier is the mean over iterations and processes', async () => {
  const own: number[] = []
  const nothing = async (): Promise<void> => undefined
  const session = { barrierAll: nothing, barrierAllOnStream: nothing, syncAllOnStream: nothing }
  const pe = {
    rankGroup: { ...groupOfThree(own), ranks: [] },
    session: { ...session, barrierAllSync: () => undefined, syncAllSync: () => undefined },
    stream: { synchronize: nothing, synchronizeSync: () => undefined },
  }
  sixMilliseconds()
  let rows: unknown[] = []
  const printed: string[] = []
  const options = readOptions(['barrier', '-n', '3', '-w', '1'], optionsOf)
  const output = {
    print: (line: string) => void printed.push(line),
    write: async (all: unknown[]) => void (rows = all),
  }
  expect(await barrierTest.run(pe as unknown as Pe, options, output as never)).toBe(0)
  expect(own).toEqual([2000, 2000, 2000, 2000])
  expect(rows.map((row) => (row as { latency: number }).latency)).toEqual(Array(4).fill((2000 * 5) / 3))
  // As wide as the head of the table, and as figures of up to 9 digits are.
  expect(printed[0]).toBe('     barrier     host     3333.3')
  expect(headLines(barrierTest.columns)[0]).toBe('#  operation     from    latency')
})

test('a loop over calls of the driver package makes as many as it is timed for', () => {
  const device = Device.get(0)
  // With its launches, which are left out where their time says nothing.
  vi.spyOn(device, 'isSoftware', 'get').mockReturnValue(false)
  const { loops, prepared, stream, kernels, dispose } = makeDriverCalls(device)
  const plan = kernels?.empty0.prepare({ grid: 1, block: 1 })
  const launch = vi.spyOn(Object.getPrototypeOf(plan), 'launch')
  const spies = {
    query: vi.spyOn(Stream.prototype, 'query'),
    record: vi.spyOn(Stream.prototype, 'record'),
    copy: vi.spyOn(DeviceBuffer.prototype, 'copyFrom'),
    fill: vi.spyOn(DeviceBuffer.prototype, 'fill'),
    pool: vi.spyOn(DeviceBuffer, 'allocateOn'),
    launch0: vi.spyOn(Kernel.prototype, 'launch'),
    launch4: vi.spyOn(Kernel.prototype, 'launch'),
  }
  expect(Object.keys(loops)).toEqual(Object.keys(spies))
  for (const [name, spy] of Object.entries(spies)) {
    spy.mockClear()
    loops[name]?.(5)
    expect(spy, name).toHaveBeenCalledTimes(5)
  }
  expect(Object.keys(prepared)).toEqual(['launch0', 'launch4'])
  for (const loop of Object.values(prepared)) {
    launch.mockClear()
    loop(5)
    expect(launch).toHaveBeenCalledTimes(5)
  }
  sixMilliseconds()
  const counts: number[] = []
  expect(timeOfCall(stream, (count) => void counts.push(count), 3)).toBe(6_000_000 / callsPerBurst)
  expect(counts).toEqual(Array(3).fill(callsPerBurst))
  dispose()
})

test('a limit beyond what a timer can have is refused by name', () => {
  expect(readOptions(['all-reduce', '--timeout', '2147483'], optionsOf).timeout).toBe(2_147_483_000)
  const beyond = () => readOptions(['all-reduce', '--timeout', '2147484'], optionsOf)
  expect(beyond).toThrow('--timeout must be at most 2147483 seconds')
})
