import { Device, DeviceBuffer, Kernel, Module, type Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { decodeArray, encodeArray, type StorageArray } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { BenchData, patternBytes } from '../src/bench/collectives/data.js'
import { countFor, operations, type Source } from '../src/bench/collectives/operations.js'
import { type BenchType, type Reduction, reductions, typeNames } from '../src/bench/options.js'
import { PatternKernels } from '../src/bench/patternKernels.js'

let device: Device
let stream: Stream
let kernels: PatternKernels
beforeAll(() => {
  useSoftwareDevice({ devices: 2 })
  device = Device.get(0)
  stream = device.createStream()
  kernels = new PatternKernels(device, stream, patternBytes)
})
afterAll(() => {
  kernels.dispose()
  stream.dispose()
})

test.each(['f32', 'bf16', 'i8', 'u64', 'f8e4m3'] as const)(
  '%s: one wrong element among many is counted as one',
  async (type) => {
    // Longer than the period of the data, and than one piece that is read back.
    const length = 65_521 * 40 + 7
    const data = new BenchData(type, 'sum', 4, length)
    const buffer = DeviceBuffer.allocate(device, type, length)
    data.fill(buffer, 2, 3, kernels)
    await stream.synchronize()
    expect(await data.wrong(buffer, { rank: 2, part: 3 }, kernels, stream)).toBe(0)
    // Data of another rank and of another part.
    expect(await data.wrong(buffer, { rank: 1, part: 3 }, kernels, stream)).toBeGreaterThan(length / 2)
    expect(await data.wrong(buffer, { rank: 2, part: 2 }, kernels, stream)).toBeGreaterThan(length / 2)
    const place = buffer.slice(length - 5, length - 4)
    const value = (await place.toArray()) as StorageArray
    const bytes = new Uint8Array(value.buffer)
    bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 0x41
    place.copyFromSync(value as never)
    expect(await data.wrong(buffer, { rank: 2, part: 3 }, kernels, stream)).toBe(1)
    buffer.dispose()
  },
)

test('memory shorter than the pattern, and empty memory, are checked', async () => {
  const pattern = Uint32Array.of(1, 2, 3, 4)
  const buffer = DeviceBuffer.zeros(device, 'u32', 7)
  kernels.fill(buffer, pattern)
  expect(await buffer.toArray({ stream })).toEqual(Uint32Array.of(1, 2, 3, 4, 1, 2, 3))
  const short = buffer.slice(0, 3)
  short.fillSync(9, { stream })
  kernels.fill(short.slice(0, 2), pattern)
  expect(await buffer.toArray({ stream })).toEqual(Uint32Array.of(1, 2, 9, 4, 1, 2, 3))
  expect([await kernels.countDifferent(short, pattern), await kernels.countDifferent(buffer, pattern)]).toEqual([1, 1])
  expect(await kernels.countDifferent(buffer.slice(0, 0), pattern)).toBe(0)
  kernels.fill(buffer.slice(0, 0), pattern)
  buffer.dispose()
})

test('shifted data is wrong, and unwritten memory too', async () => {
  const data = new BenchData('f32', 'sum', 2, 1_000_000)
  const buffer = DeviceBuffer.zeros(device, 'f32', 1_000_001)
  data.fill(buffer.slice(0, 1_000_000), 0, 0, kernels)
  await stream.synchronize()
  expect(await data.wrong(buffer.slice(1), { rank: 0, part: 0 }, kernels, stream)).toBeGreaterThan(900_000)
  buffer.fillSync(Number.NaN)
  expect(await data.wrong(buffer, { rank: 0, part: 0 }, kernels, stream)).toBe(1_000_001)
  buffer.dispose()
})

test('parts consist of whole 16-byte words if they are large enough', () => {
  const operation = (name: string) => {
    const found = operations.find((one) => one.name === name)
    if (found === undefined) throw new Error(name)
    return found
  }
  expect(countFor(operation('all-reduce'), 3, 1000, 4)).toBe(250)
  expect(countFor(operation('all-gather'), 3, 1024, 4)).toBe(84)
  expect(countFor(operation('all-gather'), 3, 24, 4)).toBe(2)
  expect(countFor(operation('all-gather'), 3, 8, 4)).toBe(0)
})

/** Returns the pattern of a part, of one rank or reduced over all ranks, without a device. */
function patternOf(data: BenchData, type: BenchType, source: Source): number[] {
  let found: StorageArray | undefined
  const fake = {
    fill: (_: unknown, pattern: StorageArray) => void (found = pattern),
    countDifferent: async (_: unknown, pattern: StorageArray) => {
      found = pattern
      return 0
    },
  } as unknown as PatternKernels
  if ('rank' in source) data.fill(undefined as never, source.rank, source.part, fake)
  else void data.wrong(undefined as never, source, fake, undefined as never)
  return Array.from(decodeArray(type, found as never) as ArrayLike<number | bigint>, Number)
}

describe('expected data of ranks', () => {
  const every = Object.keys(typeNames) as BenchType[]
  const exact = { f8e5m2: 8, f8e4m3: 16, i8: 127, u8: 255, bf16: 256, f16: 2048 } as Record<
    BenchType,
    number | undefined
  >
  const range = (length: number): number[] => Array.from({ length }, (_, index) => index)
  const combine: Readonly<Record<Reduction, (values: number[]) => number>> = {
    sum: (values) => values.reduce((sum, value) => sum + value, 0),
    prod: (values) => values.reduce((product, value) => product * value, 1),
    max: (values) => Math.max(...values),
    min: (values) => Math.min(...values),
    avg: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  }

  test.each(every.flatMap((type) => reductions.map((op) => [type, op] as const)))('%s, %s', (type, op) => {
    for (const worldSize of [1, 2, 8, 20]) {
      const data = new BenchData(type, op, worldSize, 512)
      const sent = range(worldSize).map((rank) => patternOf(data, type, { rank, part: 1 }))
      const results = patternOf(data, type, { part: 1 })
      expect(results).toHaveLength(512)
      const wanted = range(512).map((i) => combine[op](sent.map((values) => values[i] as number)))
      const isWhole = /^[iu]/.test(type)
      if (op !== 'avg' || isWhole) expect(results).toEqual(wanted.map(Math.trunc))
      // Rounded to the type.
      else
        for (const [i, value] of wanted.entries()) expect(Math.abs(value - results[i]!)).toBeLessThan(value / 8 + 1e-9)
      if (op === 'prod') {
        // Exact in every type: the maximum is 2 to the power of 6.
        const most = 2 ** Math.min(6, worldSize)
        expect(Math.max(...results)).toBe(most)
        expect([Math.min(...sent.flat()), Math.max(...sent.flat())]).toEqual([1, 2])
      } else {
        const limit = exact[type] ?? 2 ** 24
        const most = Math.max(1, Math.min(16, Math.floor(limit / worldSize)))
        expect([Math.min(...sent.flat()), Math.max(...sent.flat())]).toEqual([0, most])
        const sums = range(512).map((i) => combine.sum(sent.map((values) => values[i] as number)))
        expect(Math.max(...sums)).toBeLessThanOrEqual(limit)
      }
      for (const [rank, values] of sent.entries()) {
        const isIdle = op === 'prod' ? rank >= 6 : rank >= (exact[type] ?? 2 ** 24)
        expect(new Set(values).size > 1).toBe(!isIdle)
      }
    }
  })

  test.each(['sum', 'prod'] as const)('%s: is accepted only at its position', (op) => {
    const data = new BenchData('f32', op, 4, 4096)
    const equal = (one: number[], other: number[], shift = 0): number =>
      one.filter((value, i) => value === other[(i + shift) % other.length]).length / one.length
    const sources = range(4).flatMap((rank) => range(4).map((part) => patternOf(data, 'f32', { rank, part })))
    // With two possible values about half are equal.
    const limit = op === 'prod' ? 0.75 : 0.15
    for (const shift of range(64).slice(1)) expect(equal(sources[0]!, sources[0]!, shift)).toBeLessThan(limit)
    for (const [index, one] of sources.entries())
      for (const other of sources.slice(index + 1)) expect(equal(one, other)).toBeLessThan(limit)
  })

  test('repeats after a prime number of elements, or at the end of the part', () => {
    for (const [longest, period] of [
      [1, 1],
      [65_521, 65_521],
      [65_522, 65_521],
    ] as const)
      expect(patternOf(new BenchData('u8', 'sum', 2, longest), 'u8', { rank: 0, part: 0 })).toHaveLength(period)
    expect(patternBytes).toBeGreaterThanOrEqual(8 * 65_521)
  })
})

describe('results that differ in their last bits', () => {
  /** Returns the wrong elements of a result that is read in slices, after a device has found a difference. */
  function wrongIn(data: BenchData, values: StorageArray, source: Source) {
    const slices: [number, number][] = []
    const result = {
      length: values.length,
      slice: (start: number, end: number) => {
        slices.push([start, end])
        return { toArray: async () => values.slice(start, end) }
      },
    }
    const fake = { countDifferent: async () => 1 } as unknown as PatternKernels
    return { slices, wrong: data.wrong(result as never, source, fake, undefined as never) }
  }

  const doubles = (data: BenchData, source: Source): Float64Array<ArrayBuffer> =>
    Float64Array.from(patternOf(data, 'f64', source))

  test.each<[Reduction, number, Source, number]>([
    ['avg', 1, { part: 0 }, 1],
    ['avg', 4, { part: 0 }, 4],
    // Everything else is exact, and copied data is equal.
    ['avg', 4, { rank: 1, part: 0 }, 0],
    ['sum', 4, { part: 0 }, 0],
  ])(
    '%s of %d ranks, %j: a difference of %d units in the last place is accepted',
    async (op, worldSize, source, units) => {
      const data = new BenchData('f64', op, worldSize, 4096)
      const values = doubles(data, source)
      // A power of 2, where the unit in the last place is largest.
      const place = values.findIndex((value) => value === 2 || value === 1 || value === 4)
      for (const [far, wrong] of [
        [units, 0],
        [units + 1, 1],
      ] as const) {
        const changed = values.slice()
        changed[place]! *= 1 + far * 2 ** -52
        expect(await wrongIn(data, changed, source).wrong).toBe(wrong)
        changed[place] = values[place]! * (1 - far * 2 ** -52)
        expect(await wrongIn(data, changed, source).wrong).toBe(wrong)
      }
      values[place] = Number.NaN
      expect(await wrongIn(data, values, source).wrong).toBe(1)
    },
  )

  test.each([
    ['f8e5m2', 2],
    ['f8e4m3', 3],
    ['bf16', 7],
    ['f16', 10],
    ['f32', 23],
    ['f64', 52],
  ] as const)('%s: averages of two ranks may differ by two units of 2 to the power of -%d', async (type, bits) => {
    const data = new BenchData(type, 'avg', 2, 1024)
    const numbers = patternOf(data, type, { part: 0 })
    const place = numbers.indexOf(2)
    expect(place).toBeGreaterThanOrEqual(0)
    for (const [units, wrong] of [
      [2, 0],
      [3, 1],
    ] as const) {
      numbers[place] = 2 + 2 * units * 2 ** -bits
      const values = encodeArray(type, numbers as never) as StorageArray
      expect(await wrongIn(data, values, { part: 0 }).wrong).toBe(wrong)
    }
  })

  test.each(['bf16', 'i32', 'u64'] as const)('%s: averages are compared as numbers', async (type) => {
    const data = new BenchData(type, 'avg', 2, 64)
    const numbers = patternOf(data, type, { part: 0 })
    const place = numbers.indexOf(4)
    const wrongWith = (value: number) => {
      numbers[place] = value
      const values = encodeArray(type, (type === 'u64' ? numbers.map(BigInt) : numbers) as never) as StorageArray
      return wrongIn(data, values, { part: 0 }).wrong
    }
    // Integers have no tolerance; bf16 has two units of 2 to the power of -7.
    if (type === 'bf16') expect(await wrongWith(4 * (1 + 2 ** -6))).toBe(0)
    for (const value of [5, 8]) expect(await wrongWith(value)).toBe(1)
  })

  test('are read in pieces of whole periods, and differences are summed', async () => {
    const period = 65_521
    const data = new BenchData('f64', 'sum', 2, 4_000_000)
    const pattern = doubles(data, { part: 0 })
    const values = new Float64Array(16 * period + 3).map((_, i) => pattern[i % period]!)
    for (const place of [0, 16 * period, 16 * period + 1, values.length - 1]) values[place]! += 1
    const { slices, wrong } = wrongIn(data, values, { part: 0 })
    expect(await wrong).toBe(4)
    const piece = 16 * period
    expect(slices).toEqual([
      [0, piece],
      [piece, piece + 3],
    ])
    const short = wrongIn(data, values.slice(0, period + 1), { part: 0 })
    expect([await short.wrong, short.slices]).toEqual([1, [[0, period + 1]]])
  })
})

test('expected data is computed once', () => {
  const data = new BenchData('f32', 'sum', 2, 4096)
  const patterns = new Set<unknown>()
  const fake = { fill: (_: unknown, pattern: unknown) => void patterns.add(pattern) } as unknown as PatternKernels
  for (const [rank, part] of [
    [0, 0],
    [0, 0],
    [1, 0],
    [0, 1],
  ] as const)
    data.fill(undefined as never, rank, part, fake)
  expect(patterns.size).toBe(3)
})

describe('pattern kernels', () => {
  test.each([
    ['u8', Uint8Array],
    ['u16', Uint16Array],
    ['u32', Uint32Array],
    ['f64', Float64Array],
  ] as const)('%s', async (type, Numbers) => {
    // More than one block, with a period that does not start at a block; more than the threads of all blocks.
    for (const length of [1, 255, 257, 5000, 2048 * 256 + 3]) {
      // Values with bits in the first and the last byte of each element.
      const most = 2 ** (8 * (Numbers.BYTES_PER_ELEMENT - 1))
      const pattern = new Numbers(771).map((_, i) => ((i * 7) % 251) * most + (most === 1 ? 0 : i % 3))
      const buffer = DeviceBuffer.allocate(device, type, length)
      kernels.fill(buffer, pattern)
      const values = (await buffer.toArray({ stream })) as Float64Array
      expect(values.every((value, i) => value === pattern[i % 771])).toBe(true)
      expect(await kernels.countDifferent(buffer, pattern)).toBe(0)
      buffer.slice(0, 1).fillSync(252 as never, { stream } as never)
      buffer.slice(length - 1).fillSync(252 as never, { stream } as never)
      expect(await kernels.countDifferent(buffer, pattern)).toBe(Math.min(2, length))
      buffer.dispose()
    }
  })

  test('launch on their stream, and free their memory', () => {
    const launch = vi.spyOn(Kernel.prototype, 'launch')
    const own = new PatternKernels(device, stream, 64)
    const buffer = DeviceBuffer.zeros(device, 'u32', 2048 * 256 + 1)
    const grids = [1, 256, 257, buffer.length].map((length) => {
      own.fill(buffer.slice(0, length), Uint32Array.of(1, 2, 3))
      return launch.mock.lastCall?.[0].grid
    })
    expect(grids).toEqual([1, 1, 2, 2048])
    expect(launch.mock.lastCall?.[0]).toMatchObject({ block: 256, stream })
    const dispose = [vi.spyOn(Module.prototype, 'dispose'), vi.spyOn(DeviceBuffer.prototype, 'dispose')]
    own[Symbol.dispose]()
    expect(dispose.map((spy) => spy.mock.calls.length)).toEqual([1, 2])
    vi.restoreAllMocks()
    buffer.dispose()
  })
})
