import { Device, DeviceBuffer, Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { optionsOf } from '../src/bench/command.js'
import { atomicTest } from '../src/bench/nvshmem/atomics.js'
import { barrierTest } from '../src/bench/nvshmem/barriers.js'
import type { NvshmemTest, Pe } from '../src/bench/nvshmem/pes.js'
import { transferTest } from '../src/bench/nvshmem/transfers.js'
import { firstRuns, firstRunsOf, readOptions } from '../src/bench/options.js'
import { PatternKernels } from '../src/bench/patternKernels.js'
import { headLines } from '../src/bench/report/columns.js'
import { groupOfThree, nothing, sixMilliseconds } from './support/bench.js'

useSoftwareDevice({ devices: 2 })
afterEach(() => void vi.restoreAllMocks())

test('the time of a barrier is the mean over iterations and processes', async () => {
  const own: number[] = []
  const session = { barrierAll: nothing, barrierAllOnStream: nothing, syncAllOnStream: nothing }
  const group = groupOfThree(own)
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
  // As wide as the table's head and as numbers of up to 9 digits.
  expect(printed[0]).toBe('     barrier     host     3333.3')
  expect(headLines(barrierTest.columns)[0]).toBe('#  operation     from    latency')
})

test.each(['barrierAll', 'barrierAllOnStream', 'syncAllOnStream'])('a refused %s has no figure', async (name) => {
  const refused = new Error('refused')
  const session = { barrierAll: nothing, barrierAllOnStream: nothing, syncAllOnStream: nothing }
  const pe = {
    rankGroup: groupOfThree([]),
    session: { ...session, [name]: () => Promise.reject(refused) },
    stream: { synchronize: nothing },
  }
  const options = readOptions(['barrier'], optionsOf)
  await expect(barrierTest.run(pe as unknown as Pe, options, undefined as never)).rejects.toBe(refused)
})

/** Runs an NVSHMEM benchmark as a PE with an imaginary session. Returns its output and its files. */
async function runPe(test: NvshmemTest, session: object, words: readonly string[]) {
  const printed: string[] = []
  const written: unknown[] = []
  const stream = Device.get(0).createStream()
  const pe = { rankGroup: groupOfThree([], [0]), session, stream }
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

describe.each(['put', 'get'] as const)('the benchmark of %s', (kind) => {
  type Bytes = DeviceBuffer<'u8'>
  const words = [kind, '-n', '4', '-w', '2', '-b', '8', '-e', '16']

  /** One of two PEs. `arrive` delivers the bytes of the other PE, once for all transfers of a size. */
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

  test('reports latency, bandwidth and rate per operation', async () => {
    const own = session(0, () => undefined)
    const waits = vi.spyOn(Stream.prototype, 'synchronizeSync')
    sixMilliseconds()
    const { status, printed, rows, plotted, summary } = await runPe(transferTest(kind), own, [...words, '-c', '0'])
    // 6 ms for 4 transfers.
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
    // Each loop has warm-ups, those of the first size only for its first row; one more call precedes all.
    const queued = (bytes: number): number => 2 * (4 + 2 + (bytes === 8 ? firstRunsOf(8) : 0)) + 1
    for (const bytes of [8, 16]) {
      const made = own.calls.filter((call) => call === `${kind}OnStream ${bytes} to 1`)
      expect(made).toHaveLength(queued(bytes))
      const blocking = own.calls.filter((call) => call === `${kind}Sync ${bytes} to 1`)
      expect(blocking).toHaveLength((queued(bytes) - 1) / 2)
    }
    const loops = (queued(8) - 1 + queued(16) - 1) / 2
    expect(own.calls.filter((call) => call === 'quietSync')).toHaveLength(loops)
    // One loop waits for each call, the other for all warm-ups and for all timed calls.
    expect(waits).toHaveBeenCalledTimes(loops + 2 * 2)
    // The data exists before the first call and has arrived before the check. Then the next size follows.
    expect(own.calls.slice(0, 3)).toEqual(['barrierAll', `${kind}OnStream 8 to 1`, 'barrierAll'])
    expect(own.calls.filter((call) => call === 'barrierAll')).toHaveLength(6)
    expect(own.calls.at(-1)).toBe('barrierAll')
    expect(own.buffers.every(({ disposed }) => disposed)).toBe(true)
  })

  test('is correct only where the bytes of the other PE have arrived', async () => {
    // The contents of each PE's two buffers before a size.
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
        // The sum over three processes with equal numbers.
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

  test('rethrows the error of a call on a stream', async () => {
    const refused = new Error('refused')
    const own = session(0, () => undefined)
    let calls = 0
    const failing = { ...own, [`${kind}OnStream`]: async () => (calls++ === 3 ? Promise.reject(refused) : undefined) }
    await expect(runPe(transferTest(kind), failing, [...words, '-c', '0'])).rejects.toBe(refused)
    for (const buffer of own.buffers) buffer.dispose()
  })
})

describe('the benchmark of atomics', () => {
  const names = ['fetch', 'set', 'swap', 'compare-swap', 'increment', 'add', 'and', 'or', 'xor']

  /** A word and the effects of atomics on it, except for `broken`, which does not change it. */
  function session(pe: number, broken?: string) {
    let word = 0n
    // A put value is visible after quiet.
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

  test('reports latency with a result, the rate without, and whether the word is correct', async () => {
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
    'detects a wrong %s',
    async (broken) => {
      // An odd number of calls in total, because an even number of xors restores the word.
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

  test('reports nothing on the other PE', async () => {
    expect((await runPe(atomicTest, session(1), words)).rows).toEqual([])
  })
})
