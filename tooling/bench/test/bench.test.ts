import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { supportedArchitectures } from '@shoal/nvrtc'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, type TestContext, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import type { Bar } from '../src/bars.js'
import { callBars } from '../src/gpu.js'
import { median, medianDifference, medianRatio, type Series, series } from '../src/statistics.js'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const folder = scratchFolder()

function run(...options: string[]) {
  const env = {
    ...process.env,
    SHOAL_DEVICE: '',
  }
  return spawnSync(process.execPath, [main, ...options], { encoding: 'utf8', env })
}

interface Report {
  readonly command: string
  readonly node: string
  readonly results: Record<string, unknown> & Record<string, unknown>[]
  readonly bars: readonly Bar[]
}

function report(...options: string[]): Report {
  const file = join(folder, `${options[0]}.json`)
  const { status, stderr } = run(...options, '--json', file)
  expect(stderr.replaceAll(/^shoal: software device.*\n/gm, '')).toBe('')
  expect(status).toBe(0)
  return JSON.parse(readFileSync(file, 'utf8')) as Report
}

function needsCompiler(context: TestContext, withCuda: boolean): void {
  try {
    execFileSync('gcc', ['--version'], { stdio: 'ignore' })
  } catch {
    context.skip('no gcc on this machine')
  }
  const homes = [process.env['CUDA_HOME'], process.env['CUDA_PATH'], '/usr/local/cuda', '/usr/local/cuda-13.0']
  if (withCuda && !homes.some((home) => home && existsSync(join(home, 'include/cuda.h')))) {
    context.skip('no cuda.h on this machine: set CUDA_HOME')
  }
}

function needsNvrtc(context: TestContext): void {
  try {
    supportedArchitectures()
  } catch (error) {
    if (error instanceof LibraryNotFoundError) context.skip('no libnvrtc on this machine: set SHOAL_NVRTC_LIBRARY')
    throw error
  }
}

test('statistics of samples are correct', () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 2, 3])).toBe(2.5)
  expect(median([])).toBeNaN()
  // A machine that is three times slower in the second round does not change the ratio.
  expect(medianRatio([2, 6, 2], [1, 3, 1])).toBe(2)
  // Equal subjects, of which the second one in each round is slower.
  expect(medianRatio([3, 2, 3, 2, 3], [2, 3, 2, 3, 2])).toBe(1)
  expect(medianRatio([3], [2])).toBe(1.5)
  expect(medianDifference([3, 2, 3, 2, 3], [2, 3, 2, 3, 2])).toBe(0)
  expect(medianDifference([12, 105, 13], [10, 100, 10])).toBe(3.75)
})

test('the limit for a pair of calls is twice that of one call', () => {
  const row = (test: string, c: number, driver: number) => ({
    case: test,
    title: test,
    unit: 'ns',
    subjects: { C: series([c, c]), driver: series([driver, driver]) },
    ratioToC: { C: 1, driver: driver / c },
  })
  expect(callBars([row('fill', 1000, 1081), row('pool', 1000, 1159), row('launch4', 100, 105)])).toMatchObject([
    { what: '4-argument launch through the driver package, ratio to C', value: 1.05, met: true },
    { what: 'fill, each call above C', value: 81, met: false },
    { what: 'pool, each call above C', value: 79.5, met: true },
  ])
})

describe('the bench program', () => {
  test.each([
    [['nothing'], 'unknown command nothing'],
    [['stub', '--rounds', '0'], '--rounds must be a whole number from 1'],
    [['stub', '--device', 'tpu'], '--device must be gpu or sim'],
    [['stub', '--what'], '--what'],
    [['constructor'], 'unknown command'],
  ])('refuses %j', (options, words) => {
    const { status, stderr } = run(...options)
    expect(status).toBe(2)
    expect(stderr).toContain(words)
    expect(stderr).not.toContain('    at ')
  })

  test.each([
    'costs',
    'gpu',
    'graphs',
    'captured-step',
    'memory',
    'nccl',
    'nvshmem',
    'ranks',
    'event-loop',
    'event-loop-ranks',
  ])('%s without a GPU prints its requirements', (command) => {
    const { status, stderr } = spawnSync(process.execPath, [main, command], {
      encoding: 'utf8',
      env: { ...process.env, SHOAL_DEVICE: '', SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' },
    })
    expect(status).toBe(2)
    expect(stderr).toContain('this needs a GPU; --device sim tries the code')
    expect(stderr).not.toContain('    at ')
  })

  test('sets its exit status with --check', (context) => {
    needsCompiler(context, false)
    const { status, stdout } = run('stub', '--rounds', '1', '--check')
    expect(status).toBe(stdout.includes('MISSED') ? 1 : 0)
  })
})

test('stub: has figures for every subject', (context) => {
  needsCompiler(context, false)
  const { command, results, bars } = report('stub', '--rounds', '2')
  expect(command).toBe('stub')
  const rows = results as unknown as { title: string; subjects: Record<string, { rounds: number[]; median: number }> }[]
  expect(rows.map(({ title }) => title)).toEqual([
    'no argument',
    '4 arguments',
    '11 arguments, unchecked',
    '11 arguments',
  ])
  for (const { subjects } of rows) {
    expect(Object.keys(subjects)).toEqual(['C', 'shoal', 'koffi'])
    for (const { rounds, median: middle } of Object.values(subjects)) {
      expect(rounds).toHaveLength(2)
      expect(middle).toBeGreaterThan(0)
    }
  }
  // Loose limits on purpose, because the bars themselves require a quiet machine.
  for (const bar of bars.filter(({ what }) => what.includes('through the block'))) expect(bar.value).toBeLessThan(300)
})

test('short-calls: compares methods with the same calls in C, on a driver that does nothing', (context) => {
  needsCompiler(context, false)
  const { results, bars } = report('short-calls', '--rounds', '1')
  const rows = results as unknown as { case: string; subjects: Record<string, { median: number }> }[]
  expect(rows.map((row) => row.case)).toEqual(
    expect.arrayContaining([
      'query',
      'record',
      'fill',
      'copy',
      'up',
      'down',
      'pool',
      'cached',
      'launch',
      'prepared',
      'build',
    ]),
  )
  for (const { subjects } of rows) {
    expect(Object.keys(subjects)).toEqual(['C', 'driver'])
    for (const { median: middle } of Object.values(subjects)) expect(middle).toBeGreaterThan(0)
  }
  expect(bars).toHaveLength(11)
})

test('import: maps no CUDA library', () => {
  const { bars } = report('import', '--rounds', '1')
  expect(bars.find(({ what }) => what.includes('libraries mapped'))).toMatchObject({ value: 0, met: true })
})

test('sys: binds every function of the raw packages, and has its bars', {
  timeout: 180_000,
}, (context) => {
  try {
    execFileSync('g++', ['--version'], { stdio: 'ignore' })
  } catch {
    context.skip('no g++ on this machine')
  }
  const { results, bars } = report('sys', '--rounds', '1')
  const { functions, imports } = results as unknown as {
    functions: Record<string, number>
    imports: { entries: { bound: Record<string, { bound: number }> }[]; everything: { bound: number } }
  }
  const counts = Object.values(functions)
  expect(imports.entries.map(({ bound }) => [bound['0']?.bound, bound['10']?.bound, bound['all']?.bound])).toEqual(
    counts.map((count) => [0, 10, count]),
  )
  expect(imports.everything.bound).toBe(counts.reduce((sum, count) => sum + count, 0))
  // Times depend on other work of the machine; memory and sizes do not.
  for (const bar of bars.filter(({ what }) => /resident memory|packed/.test(what)))
    expect(bar).toMatchObject({ met: true })
  expect(bars.filter(({ what }) => what.startsWith('import'))).toHaveLength(4)
  expect(bars.filter(({ what }) => what.startsWith('type-check'))).toHaveLength(4)
})

describe('the bench program on the software device', () => {
  test('measures costs: waits of a program, and a server meanwhile', (context) => {
    needsCompiler(context, true)
    const { results, bars } = report('costs', '--device', 'sim', '--rounds', '1', '--max-bytes', '65536')
    const { cases, beside } = results as unknown as {
      cases: { case: string; subjects: Record<string, { median: number }> }[]
      beside: { requests: number; tripsPerSecond: number; percentile99: number }
    }
    const subjectsOf = (test: string) => Object.keys(cases.find((row) => row.case === test)?.subjects ?? {})
    expect(subjectsOf('launch')).toEqual(['C', 'C again', 'awaited', 'blocking', 'prepared'])
    expect(subjectsOf('ordinary')).toEqual(['C', 'C again', 'cuMemcpy', 'awaited', 'blocking'])
    expect(subjectsOf('pool')).toEqual(['C', 'C again', 'blocking', 'cached'])
    for (const way of ['up-pinned', 'up-ordinary', 'down-pinned', 'down-ordinary'])
      for (const bytes of [4096, 65536])
        expect(subjectsOf(`${way} ${bytes}`)).toEqual(['C', 'C again', 'awaited', 'blocking'])
    expect(beside.requests).toBeGreaterThan(0)
    expect(beside.tripsPerSecond).toBeGreaterThan(0)
    expect(beside.percentile99).toBeGreaterThan(0)
    expect(bars.map(({ what }) => what)).toContain('16 round trips in flight, ratio to C')
  })

  test('measures gpu', (context) => {
    needsCompiler(context, true)
    const { results } = report('gpu', '--device', 'sim', '--rounds', '1', '--no-python')
    const cases = results['cases'] as { case: string; ratioToC: Record<string, number> }[]
    expect(cases.map((row) => row.case)).toEqual(['copy', 'fill', 'record', 'query', 'pool', 'current'])
    for (const row of cases) expect(row.ratioToC['C']).toBe(1)
  })

  test('measures captured-step: launched, and queued call by call', (context) => {
    needsCompiler(context, true)
    const { results, bars } = report('captured-step', '--device', 'sim', '--devices', '2', '--rounds', '1')
    expect(results['devices']).toHaveLength(2)
    const cases = results['cases'] as { case: string; subjects: Record<string, { median: number }> }[]
    expect(cases.map((row) => row.case)).toEqual(['launch', 'queue'])
    for (const { subjects } of cases)
      for (const name of ['C', 'shoal']) expect(subjects[name]?.median).toBeGreaterThan(0)
    expect(bars.map(({ what }) => what)).toEqual([
      'captured step, launch, ratio to C',
      'captured step, launch, share of the time of queuing it call by call',
    ])
  })

  test('measures graphs: launched and built, attributes, structs, many copies', (context) => {
    needsCompiler(context, true)
    const { results, bars } = report('graphs', '--device', 'sim', '--rounds', '1', '--processes', '2')
    const cases = results['cases'] as { case: string; subjects: Record<string, Series> }[]
    expect(cases.map((row) => row.case)).toEqual([
      'launch',
      'build',
      'instantiate',
      'cluster',
      'cooperative',
      'struct',
      'object',
      'copies',
    ])
    for (const { case: name, subjects } of cases) {
      const isBare = ['launch', 'cluster', 'cooperative', 'struct'].includes(name)
      expect(Object.keys(subjects)).toEqual(
        isBare ? ['C', 'C again', 'driver', 'bare call'] : ['C', 'C again', 'driver'],
      )
      for (const { median: middle, rounds } of Object.values(subjects)) {
        expect(middle).toBeGreaterThan(0)
        expect(rounds).toHaveLength(2)
      }
    }
    expect(bars).toHaveLength(6)
  })

  // Not a single round, which would be a trial that neither times anything nor fills the caches.
  test('measures compile: cold, from both caches, and twenty at once', (context) => {
    needsCompiler(context, false)
    needsNvrtc(context)
    const { results, bars } = report('compile', '--device', 'sim', '--rounds', '2')
    const { cases, delay } = results as unknown as {
      cases: { what: string; median: number }[]
      delay: { waited: number }
    }
    const [alone = 0, first = 0, disk = 0, , memory = 0] = cases.map(({ median: each }) => each)
    expect(alone).toBeGreaterThan(0)
    for (const cached of [disk, memory]) expect(cached).toBeLessThan(first)
    expect(delay.waited).toBeGreaterThan(first / 1000)
    expect(bars).toHaveLength(4)
  })

  test('measures kernels: of the software device, and loops in C', (context) => {
    needsCompiler(context, false)
    const { results, bars } = report('kernels', '--device', 'sim', '--rounds', '1')
    const { cases } = results as unknown as { cases: { median: number }[] }
    expect(cases).toHaveLength(9)
    for (const each of cases) expect(each.median).toBeGreaterThan(0)
    expect(bars).toHaveLength(5)
  })

  test('measures gpt: a captured training step, from C and from TypeScript', (context) => {
    needsCompiler(context, true)
    needsNvrtc(context)
    const { results, bars } = report('gpt', '--device', 'sim', '--rounds', '20')
    const { cases, losses } = results as unknown as {
      cases: { case: string; subjects: Record<string, { median: number }> }[]
      losses: Record<string, Record<string, number>>
    }
    expect(cases.map((row) => row.case)).toEqual(['1 ranks', '2 ranks'])
    for (const { subjects } of cases) expect(Object.keys(subjects)).toEqual(['C', 'shoal', 'C again'])
    // The same kernels on the same numbers must compute the same bits.
    for (const of of Object.values(losses)) expect(new Set(Object.values(of))).toEqual(new Set([of['C']]))
    expect(losses['1']?.['C']).toBeLessThan(Math.log(30))
    expect(bars.map(({ what }) => what)).toEqual([
      'gpt, steps a second of 1 ranks against C',
      'gpt, steps a second of 2 ranks against C',
      'gpt, sequences a second on two devices to those on one',
      'gpt, losses of C and Shoal apart',
    ])
  })

  test('measures nccl: every collective, with all ranks in one process and with one per process', (context) => {
    needsCompiler(context, true)
    const { results, bars } = report(
      'nccl',
      '--device',
      'sim',
      '--rounds',
      '1',
      '--devices',
      '3',
      '--max-bytes',
      '1024',
    )
    const rows = results['cases'] as (Record<'layout' | 'operation', string> & {
      readonly bytes: number
      readonly subjects: Record<string, { readonly rounds: readonly number[] }>
      readonly ratioToC: Record<string, number>
      readonly busBandwidthRatio: Record<string, number>
    })[]
    expect(results['without']).toEqual([])
    for (const layout of ['process', 'processes']) {
      const sizes = (operation: string) =>
        rows.filter((row) => row.layout === layout && row.operation === operation).map((row) => row.bytes)
      expect(sizes('all-reduce')).toEqual([8, 64, 1024])
      // These need at least one element per rank.
      for (const operation of ['all-gather', 'reduce-scatter', 'all-to-all'])
        expect(sizes(operation)).toEqual([12, 64, 1024])
    }
    for (const row of rows) {
      expect(Object.keys(row.subjects)).toEqual(['C', 'shoal', 'prepared', 'C again'])
      // One round in each pass.
      for (const { rounds } of Object.values(row.subjects)) expect(rounds).toHaveLength(4)
      expect(row.ratioToC['shoal']).toBeGreaterThan(0)
      expect((row.ratioToC['C again'] ?? 0) * (row.busBandwidthRatio['C again'] ?? 0)).toBeCloseTo(1)
    }
    expect(bars).toHaveLength(16)
    for (const bar of bars) expect(bar.ofCAgain).toBeGreaterThan(0)
    // There are as many passes per layout as subjects. Each has at least one processor per process, or none.
    const processors = results['processors'] as Record<string, number[][]>
    expect(Object.keys(processors)).toEqual(['process', 'processes'])
    for (const [layout, processes] of [
      ['process', 1],
      ['processes', 3],
    ] as const) {
      expect(processors[layout]).toHaveLength(4)
      for (const { length } of processors[layout] ?? []) expect(length === 0 || length >= processes).toBe(true)
    }
  })

  test('measures nccl: only the requested cases', (context) => {
    needsCompiler(context, true)
    const { results } = report(
      ...['nccl', '--device', 'sim', '--rounds', '1', '--max-bytes', '8', '--only', 'processes,all-gather'],
    )
    expect(results['cases']).toMatchObject([{ layout: 'processes', operation: 'all-gather', bytes: 8 }])
    expect(run('nccl', '--device', 'sim', '--only', 'gossip').stderr).toContain('--only gossip: there are process,')
  })

  test('measures nvshmem: every case in C, raw, safe and awaited', (context) => {
    needsCompiler(context, true)
    const { results, bars } = report('nvshmem', '--device', 'sim', '--rounds', '1', '--max-bytes', '64')
    expect(results['without']).toEqual([])
    const cases = results['cases'] as { case: string; subjects: object; ratioToC: Record<string, number> }[]
    expect(cases.map((row) => row.case)).toEqual([
      ...['put', 'get', 'put-latency', 'get-latency'].flatMap((test) => [`${test} 8`, `${test} 64`]),
      ...['barrier 8', 'sync 8', 'barrier-on-stream 8'],
      ...['host-put 8', 'host-put 64', 'host-get 8', 'host-get 64', 'p 8', 'g 8'],
      ...['add', 'fetch-add', 'set', 'fetch', 'compare-swap'].map((operation) => `atomic-${operation} 8`),
    ])
    for (const row of cases) {
      expect(Object.keys(row.subjects).slice(0, 3)).toEqual(['C', 'raw', 'shoal'])
      expect(row.ratioToC['shoal']).toBeGreaterThan(0)
    }
    expect(Object.keys(cases.find((row) => row.case === 'barrier 8')?.subjects ?? {})).toContain('awaited')
    // One per pass; there are as many passes as subjects.
    expect(results['processors']).toHaveLength(5)
    expect(bars).toHaveLength(5)
    // C against itself, computed in the same way.
    const worst = (pattern: RegExp) =>
      Math.max(...cases.filter((row) => pattern.test(row.case)).map((row) => row.ratioToC['C again'] ?? Number.NaN))
    const patterns = [/^put-latency/, /^get-latency/, /^barrier 8/, /^barrier-on-stream/, /^atomic-/]
    expect(bars.map((bar) => bar.ofCAgain)).toEqual(patterns.map(worst))
  })

  test('measures ranks', (context) => {
    needsCompiler(context, true)
    const { results, bars } = report('ranks', '--device', 'sim', '--rounds', '1', '--devices', '3')
    const starts = results['starts'] as Record<string, Record<string, { median: number }>>
    for (const name of ['C', 'shoal', 'shoal run']) {
      const { init, first, whole } = starts[name] ?? {}
      expect(init?.median).toBeGreaterThan(0)
      expect(first?.median).toBeGreaterThan(0)
      expect(whole?.median).toBeGreaterThan((init?.median ?? 0) + (first?.median ?? 0))
    }
    expect(bars.map(({ what }) => what)).toEqual([
      'initRank of 3 ranks against C',
      'shoal run of 3 ranks to the first all-reduce, time above C',
    ])
  })

  test('measures event-loop-ranks: each wait really waits, and the event loop keeps running', () => {
    const { results, bars } = report('event-loop-ranks', '--device', 'sim', '--wait-seconds', '1')
    const waits = results['waits'] as { what: string; waited: number; samples: number }[]
    expect(waits.map(({ what }) => what)).toEqual([
      'NCCL: initRank',
      'NCCL: all-reduce',
      'NVSHMEM: init',
      'NVSHMEM: barrierAll',
    ])
    for (const { waited, samples } of waits) {
      expect(waited).toBeGreaterThan(950)
      expect(samples).toBeGreaterThan(100)
    }
    expect(bars).toHaveLength(12)
  })

  test('measures memory', (context) => {
    needsCompiler(context, true)
    const { results, bars } = report('memory', '--device', 'sim', '--rounds', '1', '--no-python')
    const cases = results['cases'] as { case: string; subjects: object; ratioToC: Record<string, number> }[]
    const names = ['map', 'mapWithoutWait', 'grow', 'release', 'growByCopy', 'pool', 'toDevice', 'toHost', 'exchange']
    expect(cases.map((row) => row.case)).toEqual(names)
    for (const row of cases) expect(row.ratioToC['C']).toBe(1)
    for (const name of ['map', 'grow', 'pool', 'toDevice', 'toHost', 'exchange']) {
      expect(Object.keys(cases.find((row) => row.case === name)?.subjects ?? {})).toContain('driver')
    }
    // These hold on every device.
    for (const what of ['address and first step', 'growth of device memory', 'descriptors left open']) {
      expect(bars.find((bar) => bar.what.includes(what))).toMatchObject({ met: true })
    }
    expect(bars).toHaveLength(10)
  })

  test('measures event-loop', () => {
    const { bars } = report('event-loop', '--device', 'sim', '--rounds', '1')
    expect(bars).toHaveLength(3)
  })
})
