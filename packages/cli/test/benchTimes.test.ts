import { Device, DeviceBuffer, Kernel, Module, Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { afterEach, expect, test, vi } from 'vitest'
import { callsPerBurst, makeDriverCalls, timeOfCall } from '../src/bench/driverCalls.js'
import { repeat, repeatAwaited, timeOf, timeOfAwaited } from '../src/bench/timing.js'
import { sixMilliseconds } from './support/bench.js'

useSoftwareDevice({ devices: 2 })
afterEach(() => void vi.restoreAllMocks())

test('a timed loop returns the time per call, without the warm-ups', async () => {
  sixMilliseconds()
  const counts: number[] = []
  expect(timeOf(4, 3, (count) => void counts.push(count))).toBe(1500)
  expect(await timeOfAwaited(5, 2, async (count) => counts.push(count))).toBe(1200)
  expect(timeOf(2, 0, (count) => void counts.push(count))).toBe(3000)
  expect(counts).toEqual([3, 4, 2, 5, 2])
  // There is not even an empty loop, which would wait.
  counts.splice(0)
  timeOf(2, 1, (count) => void counts.push(count))
  await timeOfAwaited(2, 1, async (count) => counts.push(count))
  await timeOfAwaited(2, 0, async (count) => counts.push(count))
  expect(counts).toEqual([1, 2, 1, 2, 2])
})

test('a timed loop makes each call once, and waits once at the end', async () => {
  const seen: (number | string)[] = []
  repeat(
    (i) => seen.push(i),
    () => seen.push('wait'),
  )(3)
  expect(seen).toEqual([0, 1, 2, 'wait'])
  let awaited = 0
  await repeatAwaited(async () => {
    await Promise.resolve()
    awaited += 1
  })(4)
  expect(awaited).toBe(4)
})

test('a timed loop over driver calls makes as many calls as it is timed for', () => {
  const device = Device.get(0)
  // With its launches, which are omitted if their time has no meaning.
  vi.spyOn(device, 'isSoftware', 'get').mockReturnValue(false)
  const created = vi.spyOn(device, 'createStream')
  const { loops, prepared, stream, event, from, to, kernels, dispose } = makeDriverCalls(device)
  expect(created).toHaveBeenCalledWith({ nonBlocking: true })
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
  const config = { grid: 1, block: 32, stream }
  const wanted = {
    query: [],
    record: [event],
    copy: [from, { stream }],
    fill: [0, { stream }],
    pool: [stream, 'u8', 4096],
    launch0: [config],
    launch4: [config, 2, from, to, 256],
  }
  for (const [name, words] of Object.entries(wanted)) {
    loops[name]?.(1)
    expect(spies[name as keyof typeof spies].mock.lastCall, name).toEqual(words)
  }
  expect([from, to].map(({ length }) => length)).toEqual([256, 256])
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
  const module = vi.spyOn(Module.prototype, 'dispose')
  dispose()
  expect([from, to, event, stream].map(({ disposed }) => disposed)).toEqual(Array(4).fill(true))
  expect(module).toHaveBeenCalledTimes(1)
})
