import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Device } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { benchCalls } from '../src/bench/calls.js'
import { benchCollective } from '../src/bench/collectives/bench.js'
import { BenchData } from '../src/bench/collectives/data.js'
import { operations } from '../src/bench/collectives/operations.js'
import { collectiveHead, collectiveLine, collectiveSummary } from '../src/bench/collectives/print.js'
import { optionsOf } from '../src/bench/command.js'
import type { CollectiveRow, Figures } from '../src/bench/figures.js'
import { atomicTest } from '../src/bench/nvshmem/atomics.js'
import { barrierTest } from '../src/bench/nvshmem/barriers.js'
import { transferTest } from '../src/bench/nvshmem/transfers.js'
import { type BenchOptions, readOptions } from '../src/bench/options.js'
import { figure, headLines, number, table } from '../src/bench/report/columns.js'
import { Output } from '../src/bench/report/output.js'
import { introduction, machineFacts, type Report, reportOf } from '../src/bench/report/report.js'
import { UsageError } from '../src/command.js'

useSoftwareDevice({ devices: 2 })
afterEach(() => void vi.restoreAllMocks())
const folder = mkdtempSync(join(tmpdir(), 'shoal-bench-output-'))
afterAll(() => rmSync(folder, { recursive: true }))
const read = (...words: string[]): BenchOptions => readOptions([...words, '--device', 'sim'], optionsOf)

const figures = (wrong: number | null, busBandwidth = 3): Figures => ({
  ...{ microseconds: 12_345.67, algorithmBandwidth: 1.5, busBandwidth, wrong },
})
const row: CollectiveRow = {
  ...{ operation: 'reduce', bytes: 1024, count: 256, dtype: 'f32', op: 'max', root: 1 },
  ...{ outOfPlace: figures(0), inPlace: null },
}

describe('result tables', () => {
  test('of collectives have the widths of nccl-tests', () => {
    expect(collectiveHead()).toEqual([
      '#                                                             out-of-place                      in-place',
      '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong',
      '#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       ',
    ])
    expect(collectiveLine(row)).toBe(
      '        1024           256     float     max       1    12346    1.50    3.00      0      N/A     N/A     N/A    N/A',
    )
    const gathered = { ...row, op: null, root: null, dtype: 'f8e4m3', outOfPlace: null, inPlace: figures(null) }
    expect(collectiveLine(gathered)).toBe(
      '        1024           256    f8e4m3    none      -1      N/A     N/A     N/A    N/A    12346    1.50    3.00    N/A',
    )
    expect(collectiveLine({ ...row, root: 0, dtype: 'new' })).toContain('       new     max       0 ')
  })

  test.each([
    [
      transferTest('put'),
      '#       size    latency  bandwidth       rate  host lat.   #wrong',
      '#        (B)       (us)     (GB/s)   (Mops/s)       (us)  (bytes)',
    ],
    [
      atomicTest,
      '#    operation     type    latency       rate   result',
      '#                             (us)   (Mops/s)         ',
    ],
    [barrierTest, '#  operation     from    latency', '#                           (us)'],
  ])('of NVSHMEM have column heads', ({ columns }, ...lines) => {
    expect(headLines(columns)).toEqual(lines)
  })

  test('change the number of digits at 1000, 10,000 and 100', () => {
    expect([999.99, 1000, 9999.9, 10_000, 10_000.4].map(figure)).toEqual([
      '999.99',
      '1000.0',
      '9999.9',
      '10000',
      '10000',
    ])
    expect([99.94, 100, 100.04, 999.94, 1000, 1000.4].map(number)).toEqual([
      ...['99.9', '100.0', '100.0', '999.9', '1000', '1000'],
    ])
    expect([Number.POSITIVE_INFINITY, Number.NaN, 0].map(number)).toEqual(['–', '–', '0.00'])
  })

  test('have columns as wide as their widest cell, including the head', () => {
    expect(
      table(
        ['name', 'a wide head'],
        [
          ['x', '1'],
          ['longer', '22'],
        ],
      ).split('\n'),
    ).toEqual([...['name    a wide head', 'x                 1', 'longer           22']])
  })
})

test('a summary counts compared results, and averages measured results', () => {
  const both = (one: Figures | null, other: Figures | null) => ({ ...row, outOfPlace: one, inPlace: other })
  expect(collectiveSummary([])).toEqual({ wrong: null, averageBusBandwidth: 0 })
  expect(collectiveSummary([both(figures(0, 4), null)])).toEqual({ wrong: 0, averageBusBandwidth: 4 })
  expect(collectiveSummary([both(figures(null, 1), figures(null, 2))])).toEqual({
    wrong: null,
    averageBusBandwidth: 1.5,
  })
  const rows = [both(figures(2, 1), figures(3, 2)), both(null, figures(null, 6))]
  expect(collectiveSummary(rows)).toEqual({ wrong: 5, averageBusBandwidth: 3 })
})

describe('the measured system and settings', () => {
  const library = { name: 'NCCL', version: '2.27.3' }

  test('are completely in the report', () => {
    vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05.678Z'), toFake: ['Date'] })
    try {
      const options = read('all-reduce')
      const report = reportOf({ worldSize: 3, processes: 2 }, library, ['a row'], options)
      expect(report).toEqual({
        ...{
          benchmark: 'all-reduce',
          date: '2026-01-02T03:04:05.678Z',
          software: true,
          library,
          ranks: 3,
          processes: 2,
        },
        ...{ driver: expect.stringMatching(/^\d+\.\d+$/), node: process.version, machine: machineFacts(), options },
        ...{ devices: Array(2).fill('Shoal Software Device'), rows: ['a row'] },
      })
      const { platform, arch, kernel, cpu, cores } = machineFacts()
      expect([platform, arch]).toEqual([process.platform, process.arch])
      expect([kernel, cpu]).toEqual([expect.stringMatching(/^\d/), expect.any(String)])
      expect(cores).toBeGreaterThan(0)
    } finally {
      vi.useRealTimers()
    }
  })

  const report = {
    ...{ benchmark: 'put', library, ranks: 1, processes: 1, driver: '12.9', software: false },
    ...{ devices: ['A', 'B', 'A'], options: { iterations: 20, warmUps: 5 } },
  } as unknown as Report<unknown>

  test.each([
    [{}, `# shoal bench put: 1 rank in one process, NCCL 2.27.3, CUDA driver 12.9, Node ${process.version}`],
    [
      { ranks: 2, processes: 2 },
      `# shoal bench put: 2 ranks in 2 processes, NCCL 2.27.3, CUDA driver 12.9, Node ${process.version}`,
    ],
    [
      { library: { name: 'CUDA driver', version: '12.9' } },
      `# shoal bench put: 1 rank in one process, CUDA driver 12.9, Node ${process.version}`,
    ],
  ])('are printed above the table: %j', (changed, line) => {
    const rest = ['# 2 × A, 1 × B', '# iterations 20 after 5 warm-ups', '#']
    expect(introduction({ ...report, ...changed })).toEqual([line, ...rest])
    const [warning, ...others] = introduction({ ...report, ...changed, software: true })
    expect(warning).toMatch(/^# SOFTWARE DEVICE: /)
    expect(others).toEqual([line, ...rest])
  })
})

describe('benchmark output', () => {
  const library = { name: 'NCCL', version: '2.27.3' }
  const first = { worldSize: 2, processes: 1, isFirst: true }
  const plotted = {
    title: 'the title',
    diagrams: [{ title: 'time', unit: 'µs', names: ['one'], bars: [{ name: 'bars', values: [1] }] }],
  }

  /** Returns two streams that record their output. */
  function streams() {
    const written = { output: '', errors: '' }
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => Boolean((written.output += text)))
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => Boolean((written.errors += text)))
    return written
  }

  test('goes only to standard output by default', async () => {
    const written = streams()
    const output = await Output.open(first, library, read('all-reduce'), ['a head'])
    output.print('one', 'two')
    await output.write([], plotted)
    expect(written.output).toMatch(/^# SOFTWARE DEVICE.*\n(?:#.*\n){4}a head\none\ntwo\n$/)
    expect(written.errors).toBe('')
  })

  test.each(['json', 'svg'] as const)('leaves standard output free for --%s -', async (name) => {
    const written = streams()
    const output = await Output.open(first, library, read('all-reduce', `--${name}`, '-'), ['a head'])
    output.print('a line')
    expect(written).toEqual({ output: '', errors: expect.stringMatching(/\na head\na line\n$/) })
    await output.write(['a row'], plotted)
    if (name === 'svg') expect(written.output).toMatch(/^<svg .*the title.*NCCL 2\.27\.3, SOFTWARE DEVICE: /s)
    else expect(JSON.parse(written.output)).toMatchObject({ library, rows: ['a row'] })
    // Valid as a file to which the shell redirects it.
    if (name === 'json') expect(written.output).toMatch(/^\{\n {2}"benchmark": "all-reduce",.*\n\}\n$/s)
  })

  test('opens its files before measuring, and writes them at the end', async () => {
    streams()
    const [json, svg] = [join(folder, 'a.json'), join(folder, 'a.svg')]
    writeFileSync(json, 'old')
    const options = { ...read('all-reduce', '--json', json, '--svg', svg), software: false }
    const output = await Output.open(first, library, options, [])
    // A failed benchmark does not overwrite existing files.
    expect([readFileSync(json, 'utf8'), readFileSync(svg, 'utf8')]).toEqual(['old', ''])
    await output.write(['a row'], plotted, { wrong: 3 })
    expect(JSON.parse(readFileSync(json, 'utf8'))).toMatchObject({ rows: ['a row'], summary: { wrong: 3 } })
    expect(readFileSync(svg, 'utf8')).toContain('NCCL 2.27.3, Shoal Software Device<')
    await output.write(['a row'], plotted)
    expect(JSON.parse(readFileSync(json, 'utf8'))).not.toHaveProperty('summary')
  })

  test.each(['json', 'svg'])('refuses an unwritable file for --%s before measuring', async (name) => {
    const written = streams()
    const options = read('all-reduce', `--${name}`, join(folder, 'nowhere/x'))
    await expect(Output.open(first, library, options, [])).rejects.toThrow(UsageError)
    await expect(Output.open(first, library, options, [])).rejects.toThrow(/nowhere\/x cannot be written: ENOENT/)
    expect(written.output).toBe('')
  })

  test('is written by the first rank only', async () => {
    const written = streams()
    const before = readdirSync(folder)
    const options = read('all-reduce', '--json', join(folder, 'other.json'), '--svg', join(folder, 'other.svg'))
    const output = await Output.open({ ...first, isFirst: false }, library, options, ['a head'])
    output.print('a line')
    await output.write([], plotted)
    expect([readdirSync(folder), written]).toEqual([before, { output: '', errors: '' }])
  })
})

describe('benchmark of a collective', () => {
  const options = () => read('reduce', '-b', '1K', '-e', '2K', '-d', 'f32,f64', '-n', '1', '-w', '0')
  const reduce = operations.find(({ name }) => name === 'reduce')!

  /** Runs a benchmark. Returns its exit status, its output and its files. */
  async function bench(wanted: BenchOptions) {
    const print = vi.spyOn(Output.prototype, 'print').mockImplementation(() => undefined)
    const write = vi.spyOn(Output.prototype, 'write').mockImplementation(async () => undefined)
    const status = await benchCollective(reduce, wanted)
    return { status, lines: print.mock.calls.flat(), written: write.mock.calls[0]! }
  }

  test('returns rows, and diagrams of bandwidths and times with suitable axes', async () => {
    const { status, lines, written } = await bench(options())
    const [rows, { title, diagrams }, summary] = written as [
      CollectiveRow[],
      { title: string; diagrams: object[] },
      object,
    ]
    expect([status, title]).toEqual([0, 'reduce over 2 ranks'])
    const points = (type: string, pick: (row: CollectiveRow) => number | undefined) =>
      rows.filter(({ dtype }) => dtype === type).map((one) => [one.bytes, pick(one)])
    const drawn = (pick: (figures: Figures | null) => number | undefined) =>
      ['f32', 'f64'].flatMap((type) => [
        { name: `${type}, sum, root 0, out of place`, points: points(type, (one) => pick(one.outOfPlace)) },
        { name: `${type}, sum, root 0, in place`, points: points(type, (one) => pick(one.inPlace)) },
      ])
    expect(diagrams).toEqual([
      { title: 'bus bandwidth', unit: 'GB/s', logarithmic: false, lines: drawn((one) => one?.busBandwidth) },
      { title: 'time', unit: 'µs', logarithmic: true, lines: drawn((one) => one?.microseconds) },
    ])
    expect(summary).toEqual(collectiveSummary(rows))
    expect(lines.slice(-6, -2)).toEqual(rows.map(collectiveLine))
    const { averageBusBandwidth } = collectiveSummary(rows)
    expect(lines.slice(-2)).toEqual([
      ...['# elements wrong: 0 OK', `# average bus bandwidth: ${averageBusBandwidth.toPrecision(5)} GB/s`],
    ])
  })

  test('fails if results are wrong, and passes if they were not checked', async () => {
    vi.spyOn(BenchData.prototype, 'wrong').mockResolvedValue(3)
    const wrong = await bench(options())
    // Only the root has a result, in and out of place, of two types and sizes.
    expect([wrong.status, wrong.lines.at(-2)]).toEqual([1, '# elements wrong: 24 FAILED'])
    vi.restoreAllMocks()
    const unchecked = await bench({ ...options(), check: false })
    expect([unchecked.status, unchecked.lines.at(-2)]).toEqual([0, '# elements wrong: not checked'])
  })

  test('leaves the rank group also after an error', async () => {
    vi.spyOn(Output, 'open').mockRejectedValue(new UsageError('no file'))
    await expect(benchCollective(reduce, options())).rejects.toThrow('no file')
    await expect(benchCollective(reduce, { ...options(), devices: 3 })).rejects.toThrow(
      '--devices 3: this machine has 2',
    )
    await expect(benchCollective(reduce, { ...options(), root: 2 })).rejects.toThrow('--root 2: there are 2 ranks')
    await expect(benchCollective(reduce, { ...options(), devices: 1, root: 1 })).rejects.toThrow(
      '--root 1: there is one rank',
    )
  })
})

describe('benchmark of short calls', () => {
  test('reports the best of several loops, with one line and one bar each', async () => {
    const print = vi.spyOn(Output.prototype, 'print').mockImplementation(() => undefined)
    const write = vi.spyOn(Output.prototype, 'write').mockImplementation(async () => undefined)
    // The bursts of 200 calls take 0.4 ms and 0.2 ms alternately.
    let [now, looks] = [0n, 0]
    vi.spyOn(process.hrtime, 'bigint').mockImplementation(() => {
      looks += 1
      return (now += looks % 4 === 2 ? 400_000n : 200_000n)
    })
    expect(await benchCalls(read('calls', '-n', '2', '-w', '1'))).toBe(0)
    const [rows, { title, diagrams }] = write.mock.calls[0] as [
      { call: string; nanoseconds: number }[],
      { title: string; diagrams: object[] },
    ]
    const names = [
      'raw cuCtxGetCurrent (nothing but the way into C)',
      'stream.query()',
      'stream.record(event)',
      'buffer.copyFrom(other, { stream }), 1024 B',
      'buffer.fill(0, { stream })',
      'DeviceBuffer.allocateOn + disposeOn, 4 KiB',
    ]
    expect(rows.map(({ call }) => call)).toEqual(names)
    expect(title).toBe('calls that queue work')
    const values = names.map(() => 1000)
    expect(rows.map(({ nanoseconds }) => nanoseconds)).toEqual(values)
    // Two clock reads per loop, of which 50 loops are for V8.
    expect(looks).toBe(names.length * (50 + 1 + 2) * 2)
    expect(diagrams).toEqual([{ title: 'time', unit: 'ns', names, bars: [{ name: 'best of several loops', values }] }])
    const lines = print.mock.calls.flat()
    expect(lines[1]).toMatch(/^# shoal bench calls: 1 rank in one process, CUDA driver \d+\.\d+, Node/)
    expect(lines.slice(5, 8)).toEqual([
      '#                                               call       time',
      '#                                                          (ns)',
      `    raw cuCtxGetCurrent (nothing but the way into C)     1000.0`,
    ])
    expect(lines).toHaveLength(7 + names.length)
  })

  test('requires a device', async () => {
    vi.spyOn(Device, 'all').mockReturnValue([])
    await expect(benchCalls(read('calls'))).rejects.toThrow('there is no device')
  })
})
