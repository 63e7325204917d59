import { Device, DeviceBuffer, Kernel, Module, Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { measureCollective } from '../src/bench/collectives/measure.js'
import { operations } from '../src/bench/collectives/operations.js'
import { optionsOf } from '../src/bench/command.js'
import { callsPerBurst, makeDriverCalls, timeOfCall } from '../src/bench/driverCalls.js'
import { atomicTest } from '../src/bench/nvshmem/atomics.js'
import { barrierTest } from '../src/bench/nvshmem/barriers.js'
import type { NvshmemTest, Pe } from '../src/bench/nvshmem/pes.js'
import { transferTest } from '../src/bench/nvshmem/transfers.js'
import { firstRuns, firstRunsOf, readOptions } from '../src/bench/options.js'
import { PatternKernels } from '../src/bench/patternKernels.js'
import { figure, headLines, number, row, table, wrongLine } from '../src/bench/report/columns.js'
import { plot } from '../src/bench/report/plot.js'
import { repeat, repeatAwaited, timeOf, timeOfAwaited } from '../src/bench/timing.js'

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
  // Not even an empty loop, which would wait.
  counts.splice(0)
  timeOf(2, 1, (count) => void counts.push(count))
  await timeOfAwaited(2, 1, async (count) => counts.push(count))
  await timeOfAwaited(2, 0, async (count) => counts.push(count))
  expect(counts).toEqual([1, 2, 1, 2, 2])
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
    barrier: vi.fn(async () => undefined),
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
  const group = { ...groupOfThree(own), ranks }
  const rows = await measureCollective(
    operation,
    [{ type: 'f32', op: 'sum', root: 0 }],
    group,
    options,
    () => undefined,
  )
  expect(own).toEqual([1500])
  // All begin together.
  expect(group.barrier).toHaveBeenCalledTimes(1)
  expect(rows.map(({ outOfPlace }) => outOfPlace)).toEqual([
    { microseconds: 2500, algorithmBandwidth: 1024 / 2500 / 1000, busBandwidth: 1024 / 2500 / 1000, wrong: null },
  ])
})

test('the time of a barrier is the mean over iterations and processes', async () => {
  const own: number[] = []
  const nothing = async (): Promise<void> => undefined
  const session = { barrierAll: nothing, barrierAllOnStream: nothing, syncAllOnStream: nothing }
  const group = { ...groupOfThree(own), ranks: [] }
  const pe = {
    rankGroup: group,
    session: { ...session, barrierAllSync: vi.fn(), syncAllSync: vi.fn() },
    stream: { synchronize: nothing, synchronizeSync: () => undefined },
  }
  sixMilliseconds()
  let rows: unknown[] = []
  let plotted: unknown
  const printed: string[] = []
  const options = readOptions(['barrier', '-n', '3', '-w', '1'], optionsOf)
  const output = {
    print: (line: string) => void printed.push(line),
    write: async (all: unknown[], drawn: unknown) => {
      rows = all
      plotted = drawn
    },
  }
  // The third kind takes longer than the others.
  const looks = vi.mocked(process.hrtime.bigint)
  const sixMore = looks.getMockImplementation()!
  let all = 0n
  looks.mockImplementation(() => {
    if (looks.mock.calls.length === 6) all += 3_000_000n
    return sixMore() + all
  })
  expect(await barrierTest.run(pe as unknown as Pe, options, output as never)).toBe(0)
  expect(own).toEqual([2000, 2000, 3000, 2000])
  expect(group.barrier).toHaveBeenCalledTimes(4)
  for (const call of [pe.session.barrierAllSync, pe.session.syncAllSync])
    expect(call).toHaveBeenCalledTimes(firstRuns + 1 + 3)
  const [short, long] = [(2000 * 5) / 3, (3000 * 5) / 3]
  expect(rows.map((row) => (row as { latency: number }).latency)).toEqual([short, short, long, short])
  const bars = [
    { name: 'from the host', values: [short, short] },
    { name: 'from the stream', values: [long, short] },
  ]
  expect(plotted).toEqual({
    title: 'barriers of 2 PEs',
    diagrams: [{ title: 'latency', unit: 'µs', names: ['barrier', 'sync'], bars }],
  })
  // As wide as the head of the table, and as figures of up to 9 digits are.
  expect(printed[0]).toBe('     barrier     host     3333.3')
  expect(headLines(barrierTest.columns)[0]).toBe('#  operation     from    latency')
})

test.each(['barrierAll', 'barrierAllOnStream', 'syncAllOnStream'])(
  'a %s that is refused is no figure',
  async (name) => {
    const nothing = async (): Promise<void> => undefined
    const refused = new Error('refused')
    const session = { barrierAll: nothing, barrierAllOnStream: nothing, syncAllOnStream: nothing }
    const pe = {
      rankGroup: { ...groupOfThree([]), ranks: [] },
      session: { ...session, [name]: () => Promise.reject(refused) },
      stream: { synchronize: nothing },
    }
    const options = readOptions(['barrier'], optionsOf)
    await expect(barrierTest.run(pe as unknown as Pe, options, undefined as never)).rejects.toBe(refused)
  },
)

/** Runs a test of NVSHMEM as a PE whose session is made up; what it has printed and would have written. */
async function runPe(test: NvshmemTest, session: object, words: readonly string[]) {
  const printed: string[] = []
  const written: unknown[] = []
  const stream = Device.get(0).createStream()
  const pe = { rankGroup: { ...groupOfThree([]), ranks: [{ rank: 0, device: Device.get(0) }] }, session, stream }
  const output = {
    print: (...lines: string[]) => void printed.push(...lines),
    write: async (...all: unknown[]) => void written.push(...all),
  }
  let status: number
  try {
    status = await test.run(pe as unknown as Pe, readOptions(words, optionsOf), output as never)
  } finally {
    stream.dispose()
  }
  const [rows, plotted, summary] = written as [object[], { title: string; diagrams: object[] }, object]
  return { status, printed, rows, plotted, summary }
}

describe.each(['put', 'get'] as const)('%s', (kind) => {
  type Bytes = DeviceBuffer<'u8'>
  const words = [kind, '-n', '4', '-w', '2', '-b', '8', '-e', '16']

  /** One of two PEs; `arrive` has the bytes of the other arrive, once for all transfers of a size. */
  function session(pe: number, arrive: (own: Bytes, other: Bytes, barrier: number) => void) {
    const calls: string[] = []
    const buffers: Bytes[] = []
    let barriers = 0
    let sides: [Bytes, Bytes] | undefined
    const transfer =
      (name: string) =>
      (target: Bytes, source: Bytes, options: { pe: number }): Promise<void> => {
        const isPut = name.startsWith('put')
        sides = isPut ? [source, target] : [target, source]
        calls.push(`${name} ${target.length} to ${options.pe}`)
        return Promise.resolve()
      }
    return {
      calls,
      pe,
      buffers,
      async allocate(_: string, length: number): Promise<Bytes> {
        const buffer = DeviceBuffer.zeros(Device.get(0), 'u8', length)
        buffers.push(buffer)
        return buffer
      },
      async barrierAll(): Promise<void> {
        calls.push('barrierAll')
        const length = sides?.[0].length ?? 8
        const [here, there] = buffers as [Bytes, Bytes]
        arrive(here.slice(0, length), there.slice(0, length), (barriers += 1))
      },
      putOnStream: transfer('putOnStream'),
      getOnStream: transfer('getOnStream'),
      putSync: transfer('putSync'),
      getSync: transfer('getSync'),
      quietSync: () => void calls.push('quietSync'),
    }
  }

  test('tells times, bandwidth and rate of one of many', async () => {
    const own = session(0, () => undefined)
    const waits = vi.spyOn(Stream.prototype, 'synchronizeSync')
    sixMilliseconds()
    const { status, printed, rows, plotted, summary } = await runPe(transferTest(kind), own, [...words, '-c', '0'])
    // 6 ms for 4 of them.
    const row = { latency: 1500, rate: 1 / 1500, hostLatency: 1500, wrong: null }
    expect(rows).toEqual([8, 16].map((bytes) => ({ bytes, bandwidth: bytes / 1500 / 1000, ...row })))
    expect(status).toBe(0)
    expect(summary).toEqual({ wrong: null })
    expect(printed).toEqual([
      '           8     1500.0       0.00       0.00     1500.0      N/A',
      '          16     1500.0       0.00       0.00     1500.0      N/A',
      '# bytes wrong: not checked',
    ])
    expect(plotted).toMatchObject({
      title: `${kind} between 2 PEs`,
      diagrams: [
        { title: 'bandwidth', unit: 'GB/s', logarithmic: false },
        { title: 'latency', unit: 'µs', logarithmic: true },
      ],
    })
    const lines = plotted.diagrams.flatMap((one) => (one as { lines: { name: string; points: number[][] }[] }).lines)
    expect(lines.map(({ points }) => points)).toEqual([
      [8, 16].map((bytes) => [bytes, bytes / 1500 / 1000]),
      [8, 16].map((bytes) => [bytes, 1500]),
      [8, 16].map((bytes) => [bytes, 1500]),
    ])
    // Warm-ups are for each, those of the first size for its first row; one more comes before all.
    const queued = (bytes: number): number => 2 * (4 + 2 + (bytes === 8 ? firstRunsOf(8) : 0)) + 1
    for (const bytes of [8, 16]) {
      const made = own.calls.filter((call) => call === `${kind}OnStream ${bytes} to 1`)
      expect(made).toHaveLength(queued(bytes))
      const blocking = own.calls.filter((call) => call === `${kind}Sync ${bytes} to 1`)
      expect(blocking).toHaveLength((queued(bytes) - 1) / 2)
    }
    const loops = (queued(8) - 1 + queued(16) - 1) / 2
    expect(own.calls.filter((call) => call === 'quietSync')).toHaveLength(loops)
    // Each of one loop is waited for, and of the other all warm-ups and all that are timed.
    expect(waits).toHaveBeenCalledTimes(loops + 2 * 2)
    // Data is there before the first, the first has arrived before it is looked at, and the sizes follow each other.
    expect(own.calls.slice(0, 3)).toEqual(['barrierAll', `${kind}OnStream 8 to 1`, 'barrierAll'])
    expect(own.calls.filter((call) => call === 'barrierAll')).toHaveLength(6)
    expect(own.calls.at(-1)).toBe('barrierAll')
    expect(own.buffers.every(({ disposed }) => disposed)).toBe(true)
  })

  test('is right where the bytes of the other PE have arrived, and nowhere else', async () => {
    // What each PE has in its two buffers when it begins with a size.
    const contents: { readonly [pe: number]: Uint8Array[] } = { 0: [], 1: [] }
    for (const pe of [0, 1]) {
      const looking = session(pe, (_, __, barrier) => {
        if (barrier === 1) contents[pe]?.push(...looking.buffers.map((buffer) => buffer.toArraySync()))
      })
      await runPe(transferTest(kind), looking, [...words, '-e', '8'])
    }
    const all = Object.values(contents).flat()
    expect(new Set(all.map(String)).size).toBe(4)
    const receiver = kind === 'put' ? 1 : 0
    const sent = contents[1 - receiver]?.[kind === 'put' ? 0 : 1] as Uint8Array
    const dispose = vi.spyOn(PatternKernels.prototype, 'dispose')
    for (const isRight of [true, false]) {
      dispose.mockClear()
      const receiving = session(receiver, (here, there, barrier) => {
        if (barrier !== 2 || !isRight) return
        ;(kind === 'put' ? there : here).slice(0, 8).copyFromSync(sent as Uint8Array<ArrayBuffer>)
      })
      const { status, printed, rows } = await runPe(transferTest(kind), receiving, [...words, '-e', '8', '-n', '1'])
      if (receiver === 0) {
        // The sum over three processes that have as many.
        const wrong = (rows[0] as { wrong: number }).wrong
        if (isRight) expect(wrong).toBe(0)
        else expect(wrong).toBeGreaterThan(0)
        expect(printed.at(-1)).toBe(`# bytes wrong: ${isRight ? '0 OK' : `${wrong} FAILED`}`)
        expect(status).toBe(isRight ? 0 : 1)
      }
      expect(receiving.buffers.every(({ disposed }) => disposed)).toBe(true)
      expect(dispose).toHaveBeenCalledTimes(1)
    }
  })

  test('throws what a call on a stream was refused with', async () => {
    const refused = new Error('refused')
    const own = session(0, () => undefined)
    let calls = 0
    const failing = { ...own, [`${kind}OnStream`]: async () => (calls++ === 3 ? Promise.reject(refused) : undefined) }
    await expect(runPe(transferTest(kind), failing, [...words, '-c', '0'])).rejects.toBe(refused)
    for (const buffer of own.buffers) buffer.dispose()
  })
})

describe('atomics', () => {
  const names = ['fetch', 'set', 'swap', 'compare-swap', 'increment', 'add', 'and', 'or', 'xor']

  /** A word and what atomics make of it, but for `broken`, which leaves it as it is. */
  function session(pe: number, broken?: string) {
    let word = 0n
    // What is put is there once all is quiet.
    let put: bigint | undefined
    const seen = new Set<string>()
    const peers = new Set<number>()
    const change =
      (name: string, next: (operand: bigint, wanted: bigint) => bigint) =>
      (_: unknown, ...words: unknown[]) => {
        const [operand = 0n, wanted = 0n] = words.filter((one) => typeof one === 'number').map((one) => BigInt(one))
        seen.add(name)
        peers.add((words.at(-1) as { pe: number }).pe)
        if (name !== broken) word = next(operand, wanted)
      }
    const both = (name: string, next: (operand: bigint) => bigint) => {
      const upper = name[0]?.toUpperCase() + name.slice(1)
      return { [`${name}Sync`]: change(name, next), [`fetch${upper}Sync`]: change(`fetch ${name}`, next) }
    }
    return {
      seen,
      peers,
      pe,
      allocate: async () => ({ dispose: async () => undefined }),
      barrierAll: async () => undefined,
      quietSync: () => {
        word = put ?? word
        put = undefined
      },
      putElementSync: (_: unknown, value: number) => void (put = BigInt(value)),
      getElementSync: () => Number(word),
      atomics: {
        fetchSync: change('fetch', () => word),
        setSync: change('set', (operand) => operand),
        swapSync: change('swap', (operand) => operand),
        compareSwapSync: change('compare-swap', (expected, wanted) => (word === expected ? wanted : word)),
        ...both('increment', () => word + 1n),
        ...both('add', (operand) => word + operand),
        ...both('and', (operand) => word & operand),
        ...both('or', (operand) => word | operand),
        ...both('xor', (operand) => word ^ operand),
      },
    }
  }
  const words = ['atomic', '-n', '4', '-w', '2']

  test('tell the time of one with its result, the rate without, and whether the word is right', async () => {
    sixMilliseconds()
    const own = session(0)
    const { status, printed, rows, plotted, summary } = await runPe(atomicTest, own, words)
    expect([...own.peers]).toEqual([1])
    const fetching = names.filter((name) => name !== 'set')
    const plain = names.filter((name) => !['fetch', 'swap', 'compare-swap'].includes(name))
    const wanted = ['u32', 'u64'].flatMap((dtype) =>
      names.map((operation) => ({
        ...{ operation, dtype, right: true },
        latency: fetching.includes(operation) ? 1500 : null,
        rate: plain.includes(operation) ? 1 / 1500 : null,
      })),
    )
    expect(rows).toEqual(wanted)
    expect([status, summary]).toEqual([0, { wrong: 0 }])
    expect(printed[1]).toBe('           set      u32        N/A       0.00       OK')
    expect(printed.at(-1)).toBe('# results wrong: 0 OK')
    const bars = (values: number) =>
      ['u32', 'u64'].map((name) => ({ name, values: Array(values === 1500 ? 8 : 6).fill(values) }))
    expect(plotted.title).toBe('atomics of PE 0 on a word of PE 1')
    expect(plotted.diagrams).toEqual([
      { title: 'latency, with the value before', unit: 'µs', names: fetching, bars: bars(1500) },
      { title: 'rate, without a result', unit: 'millions/s', names: plain, bars: bars(1 / 1500) },
    ])
  })

  test.each([...names.slice(1), ...names.slice(4).map((name) => `fetch ${name}`)])(
    'a wrong %s shows',
    async (broken) => {
      // An odd number, so that an xor changes the word.
      const own = session(0, broken)
      const odd = ['atomic', '-n', '1', '-w', String(firstRuns % 2 === 0 ? 0 : 1)]
      const { status, printed, rows, summary } = await runPe(atomicTest, own, odd)
      expect(own.seen).toContain(broken)
      const wrong = rows.filter((one) => (one as { right: boolean }).right === false)
      expect(wrong.map((one) => (one as { operation: string }).operation)).toEqual(
        Array(2).fill(broken.replace('fetch ', '')),
      )
      expect([status, summary]).toEqual([1, { wrong: 2 }])
      expect(printed.filter((line) => line.endsWith(' WRONG'))).toHaveLength(2)
      expect(printed.at(-1)).toBe('# results wrong: 2 FAILED')
      const unchecked = await runPe(atomicTest, session(0, broken), [...odd, '-c', '0'])
      expect(unchecked.status).toBe(0)
      expect(unchecked.rows.every((one) => (one as { right: unknown }).right === null)).toBe(true)
      expect(unchecked.printed.every((line) => line.endsWith(' N/A'))).toBe(true)
    },
  )

  test('of the other PE are none', async () => {
    expect((await runPe(atomicTest, session(1), words)).rows).toEqual([])
  })
})

test('a table is as wide as it needs, and its figures have three digits', () => {
  expect([0.01234, 9.999, 99.94, 100, 999.94, 1000, 123_456.7, Number.NaN].map(number)).toEqual([
    ...['0.0123', '10.0', '99.9', '100.0', '999.9', '1000', '123457', '–'],
  ])
  const rows = [
    ['a name', '1', '2.5'],
    ['b', '1000'],
  ]
  expect(table(['', 'one', 'two'], rows).split('\n')).toEqual([
    '         one  two',
    'a name     1  2.5',
    'b       1000',
  ])
})

test('figures have at most six characters, and columns their width', () => {
  expect([0.123, 999.994, 1000, 9999.94, 10_000, 123_456.7].map(figure)).toEqual([
    ...['0.12', '999.99', '1000.0', '9999.9', '10000', '123457'],
  ])
  expect([null, 0, 3].map((wrong) => wrongLine('elements', wrong))).toEqual([
    ...['# elements wrong: not checked', '# elements wrong: 0 OK', '# elements wrong: 3 FAILED'],
  ])
  const columns = [
    { head: 'one', unit: '(a)', width: 6 },
    { head: 'two', unit: '', width: 4 },
  ]
  expect(row(columns, ['x'])).toBe('     x     ')
  expect(headLines(columns, '  title')).toEqual(['# title', '#  one  two', '#  (a)     '])
})

describe('a plot', () => {
  /** Each text with its place. */
  const textsOf = (svg: string): string[] =>
    [...svg.matchAll(/<text[^>]*translate\(([\d.]+) ([\d.]+)\)[^>]*>([^<]*)</g)].map(
      ([, x, y, words]) => `${words} at ${Math.round(Number(x))} ${Math.round(Number(y))}`,
    )
  const line = (points: [number, number][], logarithmic = true) => ({
    ...{ title: 'time', unit: 'µs', logarithmic },
    lines: [{ name: 'float', points }],
  })
  const bars = (values: (number | null)[], more: (number | null)[]) => ({
    ...{ title: 'rate', unit: '1/s', names: ['one', 'two', 'three'] },
    bars: [
      { name: 'u32', values },
      { name: 'u64', values: more },
    ],
  })

  test('has its diagrams below each other, with titles, names and sizes in their places', async () => {
    const points: [number, number][] = [
      [1024, 0],
      [2 ** 20, 5],
      [2 ** 21, 10],
    ]
    const svg = await plot('title', 'subtitle', [line(points), bars([1, null, 3], [0, 2, 100])])
    expect(svg).toMatch(/^<svg width="1000" height="596" /)
    // What has no logarithm is left out: one point, and the bars of null and 0.
    expect(svg.match(/ecmeta_series_index="0" ecmeta_data_index="\d" ecmeta_ssr_type="chart"/g)).toHaveLength(2)
    expect(svg.match(/ecmeta_series_index="[12]" ecmeta_data_index="\d" ecmeta_ssr_type="chart"/g)).toHaveLength(4)
    const texts = textsOf(svg)
    expect(texts.slice(-4)).toEqual([
      ...['title at 500 10', 'subtitle at 500 10', 'time (µs) at 45 65', 'rate (1/s) at 45 405'],
    ])
    expect(texts).toEqual(
      expect.arrayContaining([
        ...['bytes at 420 368', '1K at 70 348', '1M at 706 348', '2M at 770 348', '1 at 62 340', '10 at 62 100'],
        ...['one at 312 456', 'two at 312 488', 'three at 312 520'],
        // One is so long that the others would not be seen.
        ...['1 at 320 544', '10 at 545 544', '100 at 770 544'],
        ...['float at 796 105', 'u32 at 796 126', 'u64 at 796 148'],
      ]),
    )
  })

  test('has axes that begin at 0 where nothing is much larger than the rest', async () => {
    const two: [number, number][] = [
      [8, 0],
      [2 ** 30, 4],
    ]
    const svg = await plot('', '', [line(two, false), bars([1, 2, 40], [null, null, null])])
    expect(svg.match(/ecmeta_series_index="0" ecmeta_data_index="\d" ecmeta_ssr_type="chart"/g)).toHaveLength(2)
    const texts = textsOf(svg)
    const of = (y: number): string[] =>
      texts.filter((text) => text.endsWith(` ${y}`)).map((text) => text.split(' ')[0]!)
    expect(of(348)).toEqual(expect.arrayContaining(['8', '1G']))
    expect(texts).toEqual(expect.arrayContaining(['0 at 62 340', '4 at 62 100']))
    expect(of(544)).toEqual(['0', '10', '20', '30', '40'])
    const longer = textsOf(await plot('', '', [bars([41, 2, 2], [null, null, null])]))
    expect(longer.filter((text) => text.endsWith(' 204')).map((text) => text.split(' ')[0])).toEqual(['1', '10', '100'])
  })

  test('stands still, on white, in letters and marks of these sizes', async () => {
    const svg = await plot('title', 'subtitle', [line([[8, 1]]), bars([1, 2, 3], [4, 5, 6])])
    expect(svg).toContain('fill="#ffffff"')
    expect(svg).not.toMatch(/@keyframes|animation/)
    const sizeOf = (words: string): string | undefined =>
      new RegExp(`font-size:(\\d+)px[^>]*font-family:sans-serif[^>]*>${words}<`).exec(svg)?.[1]
    expect(['title', 'subtitle', 'time .µs.', 'two', 'float', 'bytes'].map(sizeOf)).toEqual([
      ...['18', '12', '13', '10', '11', '12'],
    ])
    // A point is 5 wide: a circle of radius 1, 2.5 times as large.
    expect(svg).toMatch(/matrix\(2\.5,0,0,2\.5,[^>]*ecmeta_series_index="0"/)
  })

  test('cuts names for which there is no room', async () => {
    const long = { ...bars([1, 2, 3], [4, 5, 6]), names: ['x'.repeat(200), 'y', 'z'] }
    expect(await plot('', '', [long])).toMatch(/>x{20,60}\.\.\.</)
  })

  test('of one size has room for it', async () => {
    const texts = textsOf(await plot('', '', [line([[1536, 1]])]))
    expect(texts).toEqual(expect.arrayContaining(['1.5K at 70 348', '3K at 770 348']))
  })
})

test('a loop makes each call once, and waits once for all', async () => {
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

test('a loop over calls of the driver package makes as many as it is timed for', () => {
  const device = Device.get(0)
  // With its launches, which are left out where their time says nothing.
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

test('a limit beyond what a timer can have is refused by name', () => {
  expect(readOptions(['all-reduce', '--timeout', '2147483'], optionsOf).timeout).toBe(2_147_483_000)
  const beyond = () => readOptions(['all-reduce', '--timeout', '2147484'], optionsOf)
  expect(beyond).toThrow('--timeout must be at most 2147483 seconds')
})
