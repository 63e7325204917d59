import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'

const program = fileURLToPath(new URL('../bin/shoal.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'shoal-cli-bench-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Returns the environment of a user's shell, without variables that make a process a rank or name libraries. */
function environment(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(SHOAL_|RANK$|WORLD_SIZE$|LOCAL_RANK$)/.test(name))
  return { ...Object.fromEntries(kept), ...extra }
}

function shoal(words: readonly string[], extra: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], {
    encoding: 'utf8',
    env: environment(extra),
    timeout: 120_000,
  })
  return { status, stdout, errors: stderr.replaceAll(/^shoal: software device.*\n/gm, '') }
}

interface Figures {
  readonly microseconds: number
  readonly algorithmBandwidth: number
  readonly busBandwidth: number
  readonly wrong: number | null
}

interface Row {
  readonly bytes: number
  readonly count: number
  readonly dtype: string
  readonly op: string | null
  readonly root: number | null
  readonly outOfPlace: Figures | null
  readonly inPlace: Figures | null
}

interface Report<R> {
  readonly benchmark: string
  readonly software: boolean
  readonly ranks: number
  readonly processes: number
  readonly library: { readonly name: string; readonly version: string }
  readonly rows: readonly R[]
  readonly summary: { readonly wrong: number | null; readonly averageBusBandwidth: number }
}

/** Runs a benchmark on the software device and returns the parsed `--json` output. */
function bench<R = Row>(...words: string[]): Report<R> & { readonly stdout: string } {
  const file = join(folder, `${words[0]}.json`)
  const { status, stdout, errors } = shoal(['bench', ...words, '--device', 'sim', '--json', file])
  expect(errors).toBe('')
  expect(status).toBe(0)
  return { ...(JSON.parse(readFileSync(file, 'utf8')) as Report<R>), stdout }
}

const rest = (n: number): number => (n - 1) / n
const everyType = ['i8', 'u8', 'i32', 'u32', 'i64', 'u64', 'f16', 'f32', 'f64', 'bf16', 'f8e4m3', 'f8e5m2']

describe('shoal bench of collectives over three ranks in one process', () => {
  test.each([
    { name: 'all-reduce', reduces: true, rooted: false, factor: 2 * rest(3), parts: 1, hasInPlace: true },
    { name: 'all-gather', reduces: false, rooted: false, factor: rest(3), parts: 3, hasInPlace: true },
    { name: 'reduce-scatter', reduces: true, rooted: false, factor: rest(3), parts: 3, hasInPlace: true },
    { name: 'all-to-all', reduces: false, rooted: false, factor: rest(3), parts: 3, hasInPlace: false },
    { name: 'broadcast', reduces: false, rooted: true, factor: 1, parts: 1, hasInPlace: true },
    { name: 'reduce', reduces: true, rooted: true, factor: 1, parts: 1, hasInPlace: true },
    { name: 'gather', reduces: false, rooted: true, factor: rest(3), parts: 3, hasInPlace: true },
    { name: 'scatter', reduces: false, rooted: true, factor: rest(3), parts: 3, hasInPlace: true },
    { name: 'send-recv', reduces: false, rooted: false, factor: 1, parts: 1, hasInPlace: false },
  ])('$name: every element is correct', ({ name, reduces, rooted, factor, parts, hasInPlace }) => {
    // Reductions from every root would take long. reduce and broadcast use only the root's number.
    const roots = !rooted ? [null] : reduces ? [1] : [0, 1, 2]
    const some = [...(reduces ? ['-o', 'all'] : []), ...(rooted ? ['--root', roots.length > 1 ? 'all' : '1'] : [])]
    const every = ['-d', 'all', ...some]
    const few = ['-n', '2', '-w', '1', '-b', '96', '-e', '1K', '-f', '8']
    const { rows, ranks, processes, software, summary } = bench(name, '-g', '3', ...every, ...few)
    expect({ ranks, processes, software }).toEqual({ ranks: 3, processes: 1, software: true })
    const ops = reduces ? ['sum', 'prod', 'max', 'min', 'avg'] : [null]
    expect(rows).toHaveLength(everyType.length * ops.length * roots.length * 2)
    expect([...new Set(rows.map((row) => row.dtype))].sort()).toEqual([...everyType].sort())
    expect([...new Set(rows.map((row) => row.op))]).toEqual(ops)
    expect([...new Set(rows.map((row) => row.root))]).toEqual(roots)
    for (const { bytes, count, dtype, outOfPlace, inPlace } of rows) {
      const elementBytes = Number(/\d+/.exec(dtype)?.[0]) / 8
      expect(bytes).toBe(count * parts * elementBytes)
      for (const figures of hasInPlace ? [outOfPlace, inPlace] : [outOfPlace]) {
        expect(figures?.wrong).toBe(0)
        const { microseconds, algorithmBandwidth, busBandwidth } = figures as Figures
        expect(algorithmBandwidth).toBeCloseTo(bytes / microseconds / 1000, 9)
        expect(busBandwidth).toBeCloseTo(algorithmBandwidth * factor, 9)
      }
      if (!hasInPlace) expect(inPlace).toBeNull()
    }
    expect(summary.wrong).toBe(0)
  })

  test('the table has the columns of nccl-tests', () => {
    const { stdout } = bench('all-reduce', '-b', '4K', '-e', '8K', '-d', 'bfloat16', '-o', 'max')
    const lines = stdout.split('\n')
    const titles = lines.find((line) => line.includes('redop')) ?? ''
    expect(titles.replace('#', '').trim().split(/\s+/)).toEqual([
      ...['size', 'count', 'type', 'redop', 'root'],
      ...['time', 'algbw', 'busbw', '#wrong', 'time', 'algbw', 'busbw', '#wrong'],
    ])
    const cells = lines.filter((line) => !line.startsWith('#') && line !== '').map((line) => line.trim().split(/\s+/))
    expect(cells.map((row) => row.slice(0, 5))).toEqual([
      ['4096', '2048', 'bfloat16', 'max', '-1'],
      ['8192', '4096', 'bfloat16', 'max', '-1'],
    ])
    for (const row of cells) expect(row).toHaveLength(13)
    expect(stdout).toMatch(/^# elements wrong: 0 OK$/m)
    expect(stdout).toMatch(/^# average bus bandwidth: /m)
    expect(stdout).toMatch(/^# SOFTWARE DEVICE/m)
  })

  test('measures the requested sizes, and skips disabled placements and checks', () => {
    const stepped = bench('all-reduce', '-b', '1K', '-e', '3K', '-i', '1K', '--in-place', 'out', '-c', '0')
    expect(stepped.rows.map((row) => row.bytes)).toEqual([1024, 2048, 3072])
    for (const { outOfPlace, inPlace } of stepped.rows) expect([outOfPlace?.wrong, inPlace]).toEqual([null, null])
    expect(stepped.stdout).toContain('not checked')
    // 8 bytes have no element for each of three ranks. Long parts use words of 16 bytes.
    const gathered = bench('all-gather', '-g', '3', '-b', '8', '-e', '128', '-f', '4', '--in-place', 'in')
    expect(gathered.rows.map((row) => [row.bytes, row.count, row.outOfPlace])).toEqual([
      [24, 2, null],
      [96, 8, null],
    ])
  })
})

test('shoal bench under shoal run has one process per rank, and only rank 0 prints', { timeout: 120_000 }, () => {
  const file = join(folder, 'ranks.json')
  const words = ['bench', 'reduce-scatter', '-b', '1K', '-e', '4K', '-d', 'f32,f16', '--json', file]
  const { status, stdout, errors } = shoal(['run', '-n', '3', '--no-prefix', program, ...words], {
    SHOAL_DEVICE: 'sim',
  })
  expect(errors).toBe('')
  expect(status).toBe(0)
  expect(stdout.match(/redop/g)).toHaveLength(1)
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report<Row>
  expect([report.ranks, report.processes]).toEqual([3, 3])
  expect(report.rows).toHaveLength(6)
  for (const { outOfPlace, inPlace } of report.rows) expect([outOfPlace?.wrong, inPlace?.wrong]).toEqual([0, 0])
})

test('--timeout limits each wait, not the whole benchmark', { timeout: 120_000 }, () => {
  const [file, iterations, seconds] = [join(folder, 'limit.json'), 8000, 2]
  const words = ['bench', 'all-reduce', '-b', '4', '-e', '64K', '-n', String(iterations), '-c', '0', '--json', file]
  const { status, errors } = shoal(['run', '-n', '2', '--no-prefix', program, ...words, '--timeout', String(seconds)], {
    SHOAL_DEVICE: 'sim',
  })
  expect(errors).toBe('')
  expect(status).toBe(0)
  const { rows } = JSON.parse(readFileSync(file, 'utf8')) as Report<Row>
  const each = rows.flatMap(({ outOfPlace, inPlace }) => [outOfPlace?.microseconds ?? 0, inPlace?.microseconds ?? 0])
  expect((each.reduce((sum, time) => sum + time) * iterations) / 1e6).toBeGreaterThan(seconds)
})

test('when a rank is killed, the other ranks exit and name it', { timeout: 120_000 }, async () => {
  const words = ['bench', 'all-reduce', '-b', '64K', '-e', '64M', '-n', '2000', '-c', '0']
  const child = spawn(process.execPath, [program, 'run', '-n', '3', '--on-failure', 'continue', program, ...words], {
    env: environment({ SHOAL_DEVICE: 'sim' }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const ended = new Promise((resolve) => child.once('close', resolve))
  const measuring = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (output.includes('redop')) resolve()
      })
  })
  await measuring
  // It has printed its head, so all ranks have joined.
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number)
  const ranks = children.filter((pid) => readFileSync(`/proc/${pid}/environ`, 'utf8').includes('\0RANK=2\0'))
  expect(ranks).toHaveLength(1)
  process.kill(ranks[0] as number, 'SIGKILL')
  const code = await ended
  expect(code).not.toBe(0)
  expect(output).toMatch(/rank 2 .*was killed by SIGKILL/)
  expect(output).toMatch(/^\[0\] shoal bench: .*rank 2/m)
  expect(output).toMatch(/^\[1\] shoal bench: .*rank 2/m)
})

describe('shoal bench of NVSHMEM starts one process per PE', { timeout: 120_000 }, () => {
  test.each(['put', 'get'])('%s', (name) => {
    const { rows, ranks, processes, library, stdout } = bench<Record<string, number>>(name, '-e', '4K', '-f', '8')
    expect([ranks, processes, library.name]).toEqual([2, 2, 'NVSHMEM'])
    expect(rows.map((row) => row['bytes'])).toEqual([8, 64, 512, 4096])
    for (const { bytes = 0, latency, bandwidth, rate = 0, hostLatency, wrong } of rows) {
      for (const figure of [latency, hostLatency]) expect(figure).toBeGreaterThan(0)
      expect(bandwidth).toBeCloseTo((bytes * rate) / 1000, 9)
      expect(wrong).toBe(0)
    }
    expect(stdout).toContain('# bytes wrong: 0 OK')
  })

  test('measures atomic', () => {
    const { rows } = bench<{ operation: string; dtype: string; latency: number; rate: number; right: boolean }>(
      'atomic',
    )
    const names = ['fetch', 'set', 'swap', 'compare-swap', 'increment', 'add', 'and', 'or', 'xor']
    expect(rows.map(({ operation, dtype }) => `${dtype} ${operation}`)).toEqual(
      ['u32', 'u64'].flatMap((dtype) => names.map((operation) => `${dtype} ${operation}`)),
    )
    for (const { operation, latency, rate, right } of rows) {
      expect(right).toBe(true)
      if (operation === 'set') expect(latency).toBeNull()
      else expect(latency).toBeGreaterThan(0)
      if (['fetch', 'swap', 'compare-swap'].includes(operation)) expect(rate).toBeNull()
      else expect(rate).toBeGreaterThan(0)
    }
  })

  test('measures a barrier of three PEs', () => {
    const { rows, ranks } = bench<{ operation: string; from: string; latency: number }>('barrier', '-g', '3')
    expect(ranks).toBe(3)
    expect(rows.map(({ operation, from }) => `${operation} ${from}`)).toEqual([
      ...['barrier host', 'sync host', 'barrier stream', 'sync stream'],
    ])
    for (const { latency } of rows) expect(latency).toBeGreaterThan(0)
  })
})

test('shoal bench calls measures short calls', () => {
  const { rows } = bench<{ call: string; nanoseconds: number }>('calls', '-n', '3')
  expect(rows.length).toBeGreaterThanOrEqual(6)
  for (const { nanoseconds } of rows) expect(nanoseconds).toBeGreaterThan(0)
})

test('--json - prints only the figures', () => {
  const words = ['bench', 'all-reduce', '-e', '64', '-n', '1', '--device', 'sim', '--json', '-']
  const { status, stdout, errors } = shoal(words)
  expect(status).toBe(0)
  expect((JSON.parse(stdout) as Report<Row>).rows.map(({ bytes }) => bytes)).toEqual([8, 16, 32, 64])
  expect(errors).toContain('all-reduce')
})

describe('shoal bench --svg', () => {
  test('draws a line for each type, in place and out of place', () => {
    const file = join(folder, 'plot.svg')
    bench('all-reduce', '-e', '4K', '-d', 'f32,bf16', '--svg', file)
    const svg = readFileSync(file, 'utf8')
    expect(svg).toMatch(/^<svg /)
    for (const words of ['all-reduce over 2 ranks', 'SOFTWARE DEVICE', 'bus bandwidth (GB/s)', 'time (µs)'])
      expect(svg).toContain(words)
    for (const name of ['f32, sum, out of place', 'f32, sum, in place', 'bf16, sum, in place'])
      expect(svg).toContain(name)
  })

  test('labels out-of-place transfers', () => {
    const file = join(folder, 'sent.svg')
    bench('send-recv', '-e', '4K', '--svg', file)
    const svg = readFileSync(file, 'utf8')
    expect(svg).toContain('f32, out of place')
    expect(svg).not.toContain('in place')
  })

  test.each([
    {
      words: ['barrier', '-g', '2', '-n', '2'],
      told: ['barriers of 2 PEs', 'latency (µs)', 'sync', 'from the stream'],
    },
    {
      words: ['atomic', '-g', '2', '-n', '2'],
      told: ['latency, with the value before (µs)', 'rate, without a result (millions/s)', 'compare-swap', 'u64'],
    },
    { words: ['calls', '-n', '2'], told: ['calls that queue work', 'time (ns)', 'stream.query()'] },
  ])('draws bars for tests without sizes: $words', ({ words, told }) => {
    const file = join(folder, 'bars.svg')
    bench(...words, '--svg', file)
    const svg = readFileSync(file, 'utf8')
    expect(svg).toMatch(/^<svg /)
    for (const one of told) expect(svg).toContain(one)
    // Names have separate lines with the height of their letters.
    const lines = [...svg.matchAll(/text-anchor="end"[^>]*font-size:10px[^>]*translate\([\d.]+ ([\d.]+)\)/g)]
    const places = lines.map(([, y]) => Number(y)).sort((a, b) => a - b)
    expect(places.length).toBeGreaterThan(1)
    expect(places.filter((y, index) => index > 0 && y - places[index - 1]! < 12)).toEqual([])
  })

  test('reports a missing echarts before measuring', () => {
    const hook = `export async function resolve(name, context, next) {
      if (name.startsWith('echarts')) throw Object.assign(new Error('not there'), { code: 'ERR_MODULE_NOT_FOUND' })
      return next(name, context)
    }`
    const without = join(folder, 'without.mjs')
    writeFileSync(
      without,
      `import { register } from 'node:module'\nregister(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)})\n`,
    )
    const { status, stdout, errors } = shoal(
      ['bench', 'all-reduce', '--device', 'sim', '--svg', join(folder, 'none.svg')],
      { NODE_OPTIONS: `--import ${pathToFileURL(without)}` },
    )
    expect([status, stdout]).toEqual([1, ''])
    // Newer versions of Node warn about the hook.
    expect(errors).toMatch(
      /^shoal bench: --svg needs the package echarts, which is not installed: npm install echarts\n/,
    )
  })
})

describe('shoal bench refuses', () => {
  test.each([
    [[], 'which test? There are all-reduce,'],
    [['gossip'], "there is no test 'gossip'"],
    [['all-reduce', 'put'], 'unexpected put'],
    [['all-reduce', '--json', '-', '--svg', '-'], '--json - and --svg - would both be printed'],
    [['all-reduce', '-b', '12Q'], '--min-bytes must be a number of bytes such as 8, 64K, 16M or 1G, got 12Q'],
    [['all-reduce', '-b', '1M', '-e', '1K'], '--max-bytes 1K is less than --min-bytes 1M'],
    [['all-reduce', '-f', '1'], '--step-factor must be a whole number from 2, got 1'],
    [['all-reduce', '-d', 'f128'], '--datatype: no f128; there are i8,'],
    [['all-reduce', '-o', 'mean'], '--op: no mean; there are sum,'],
    [['all-reduce', '-n', '0'], '--iterations must be a whole number from 1'],
    [['all-reduce', '--in-place', 'maybe'], '--in-place must be both or in or out, got maybe'],
    [['all-reduce', '--device', 'tpu'], '--device must be gpu or sim, got tpu'],
    [['all-reduce', '--what'], "Unknown option '--what'"],
    [['broadcast', '--device', 'sim', '--root', '7'], '--root 7: there are 2 ranks'],
    [['all-reduce', '-b', '1', '-e', '1G', '-i', '1'], '--step-bytes 1 makes 1073741824 sizes of 1 … 1073741824 bytes'],
    [['put', '--device', 'sim', '-g', '1'], 'NVSHMEM between PEs needs two devices'],
    [['all-reduce', '--device', 'sim', '--json', '/nowhere/x.json'], '/nowhere/x.json cannot be written'],
    [['all-reduce', '--json', ''], '--json must be the name of a file, or -'],
    [['all-reduce', '--svg='], '--svg must be the name of a file, or -'],
    [['all-reduce', '-f', '4', '-i', '8'], '--step-factor and --step-bytes both set the next size'],
    [['all-reduce', '--iterations=-3'], '--iterations must be a whole number from 1, got -3'],
    [
      ['all-reduce', '-d', 'f32', '-b', '2', '-e', '3', '--device', 'sim'],
      '--max-bytes 3 is less than one element of f32',
    ],
    [
      ['all-gather', '-d', 'f64', '-b', '8', '-e', '8', '--device', 'sim'],
      '--max-bytes 8 is less than one element of f64 for each rank: 16 bytes',
    ],
    // Options of another benchmark.
    [['all-reduce', '-r', '1'], '--root does not apply to all-reduce'],
    [['all-gather', '-o', 'max'], '--op does not apply to all-gather'],
    [['all-to-all', '--in-place', 'in'], '--in-place does not apply to all-to-all'],
    [['put', '-d', 'bf16'], '--datatype does not apply to put'],
    [['atomic', '-b', '8'], '--min-bytes does not apply to atomic'],
    [['barrier', '--check', '1'], '--check does not apply to barrier'],
    [['calls', '-g', '2'], '--devices does not apply to calls'],
    [['constructor'], "there is no test 'constructor'"],
  ])('%j', (words, message) => {
    const { status, stdout, errors } = shoal(['bench', ...words])
    expect(status).toBe(2)
    expect(stdout).toBe('')
    expect(errors).toContain(`shoal bench: ${message}`)
    expect(errors).not.toContain('    at ')
  })

  test.each([
    [['all-reduce'], '0', 'there is no device'],
    [['calls'], '0', 'there is no device'],
    [['put'], '1', 'NVSHMEM between PEs needs two devices'],
    [['all-reduce', '-g', '2'], '1', '--devices 2: this machine has 1'],
  ])('%j on a machine with %s devices', (words, devices, message) => {
    const { status, stdout, errors } = shoal(['bench', ...words, '--device', 'sim'], { SHOAL_SIM_DEVICES: devices })
    expect(errors).toBe(`shoal bench: ${message}\nshoal bench --help tells how to use it.\n`)
    expect(stdout).toBe('')
    expect(status).toBe(2)
  })

  test.each([
    [
      'all-reduce',
      '2',
      '2',
      '--devices 2: this process is a rank, with one device; its launcher says how many there are',
      '-g',
      '2',
    ],
    ['all-reduce', '3', '2', 'rank 2 takes device 2: this machine has 2, and no two ranks share one'],
    ['put', '3', '2', 'rank 2 takes device 2: this machine has 2, and no two ranks share one'],
    ['get', '1', '1', 'get is between two PEs: this job has one rank'],
    ['atomic', '1', '1', 'atomic is between two PEs: this job has one rank'],
  ])('%s in a job of %s ranks on %s devices: %s', (name, ranks, devices, message, ...words) => {
    const job = ['run', '-n', ranks, '--no-prefix', program, 'bench', name, '--device', 'sim', ...words]
    const { status, errors } = shoal(job, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: devices })
    expect(errors).toContain(`shoal bench: ${message}\n`)
    expect(errors).not.toContain('    at ')
    expect(status).not.toBe(0)
  })

  test.each([
    [[], {}],
    [['--device', 'gpu'], { SHOAL_DEVICE: 'sim' }],
  ])('a machine without a GPU: %j', (words, extra) => {
    const { status, errors } = shoal(['bench', 'all-reduce', ...words], {
      SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1',
      ...extra,
    })
    expect(status).toBe(1)
    expect(errors).toContain('shoal bench: Cannot load NVIDIA CUDA driver')
    expect(errors).not.toContain('    at ')
  })

  test('shoal bench --help describes every test and option', () => {
    const { status, stdout } = shoal(['bench', '--help'])
    expect(status).toBe(0)
    for (const words of [['all-reduce', '--help'], ['-h'], ['put', '-b', '8', '-h']])
      expect(shoal(['bench', ...words])).toMatchObject({ status: 0, stdout })
    for (const word of ['all-reduce', 'send-recv', 'atomic', '--max-bytes', '--svg', 'Exit status'])
      expect(stdout).toContain(word)
  })
})
