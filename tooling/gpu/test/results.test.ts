import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { renderCosts } from '../src/costsPage.mjs'
import { digestOf } from '../src/digest.mjs'
import { renderPage } from '../src/page.mjs'
import { keepRecord, readSettings, recordOf, resultsFolder } from '../src/results.mjs'

const gpu = { name: 'NVIDIA H200', driver: '580.159.04', memory: '143771 MiB', computeCapability: '9.0' }

function report() {
  return {
    started: '2026-01-02T03:04:05.000Z',
    software: false,
    about: { commit: '0123456789abcdef', modified: false, node: '24.1.0', packages: [] },
    host: {
      gpus: [gpu, gpu],
      topology: 'GPU0 NV18',
      toolkit: '13.0',
      pythonPackages: { numpy: '2.5.2' },
      kernel: '6.1',
      processor: 'a processor',
      cores: 32,
      node: '24.1.0',
    },
    libraries: [{ id: 'nccl', found: true, path: '/usr/lib/x/libnccl.so.2', step: 'loader', version: '2.28.3' }],
    jobs: [
      {
        name: 'demo',
        status: 'passed',
        seconds: 1.234,
        output: 'all right\n',
        data: { bars: [{ what: 'launch', value: 1.2, limit: 1.05, unit: '×', side: 'at most', met: false }] },
      },
      {
        name: 'conformance',
        status: 'failed',
        seconds: 3,
        output: 'a line for each case',
        data: {
          environment: { node: 'v24' },
          summary: { passed: 1, failed: 1, skipped: 1 },
          cases: [
            { suite: 'driver', name: 'one', outcome: 'ok', milliseconds: 1, notes: [] },
            {
              suite: 'driver',
              name: 'two',
              outcome: 'fail',
              milliseconds: 1,
              error: 'Error: no|more /opt/a/b/c.ptx\n  at x',
              notes: [],
            },
            { suite: 'driver', name: 'three', outcome: 'skip', milliseconds: 0, reason: 'needs 4 devices', notes: [] },
          ],
        },
      },
      { name: 'axpy', status: 'failed', seconds: 2, reason: 'exit status 1', output: 'x' },
    ],
  }
}

describe('results of a GPU host', () => {
  it('keep file names but no folders of the host', () => {
    const kept = JSON.stringify(recordOf(report()))
    expect(kept).toContain('libnccl.so.2')
    expect(kept).toContain('…/c.ptx')
    expect(kept).not.toMatch(/\/usr\/|\/opt\//)
  })

  it('refuse a run without a GPU', () => {
    expect(() => recordOf({ ...report(), software: true })).toThrow('software device')
    expect(() => recordOf({ ...report(), host: { ...report().host, gpus: [] } })).toThrow('no GPU')
  })

  it('keep the newest result of each job in the file of its setting', () => {
    const jobsOf = (...jobs: object[]) => ({ jobs: jobs as never })
    const [old, recent] = ['2026-01-02T03:00:00.000Z', '2026-01-03T03:00:00.000Z']
    inFolder((folder) => {
      const keep = (changes: object) => keepRecord(recordOf({ ...report(), ...changes }), folder)
      keep({ started: recent, ...jobsOf({ name: 'demo', status: 'passed', seconds: 2, output: 'second' }) })
      // An older result, and a job that did not run: neither replaces a result.
      keep({ started: old, ...jobsOf({ name: 'demo', status: 'failed', seconds: 1, output: 'first' }) })
      keep({ started: recent, ...jobsOf({ name: 'demo', status: 'not run', seconds: 0, reason: 'no GPU' }) })
      keep({ started: old, ...jobsOf({ name: 'axpy', status: 'passed', seconds: 1 }) })
      keep({ host: { ...report().host, gpus: [gpu] } })
      keep({ libraries: [{ ...report().libraries[0], version: '2.30.7' }] })
      expect(readdirSync(folder).sort()).toEqual([
        'nvidia-h200x1-nccl-2.28.3.json',
        'nvidia-h200x2-nccl-2.28.3.json',
        'nvidia-h200x2-nccl-2.30.7.json',
      ])
      const settings = readSettings(folder)
      expect(settings.map(({ gpuCount }) => gpuCount)).toEqual([1, 2, 2])
      expect(
        settings[1]?.jobs.map(({ name, started, seconds }: Record<string, unknown>) => [name, started, seconds]),
      ).toEqual([
        ['axpy', old, 1],
        ['demo', recent, 2],
      ])
    })
  })

  it('take the description of a machine from the newest run', () => {
    inFolder((folder) => {
      for (const [started, kernel] of [
        ['2026-01-03T03:00:00.000Z', '6.2'],
        ['2026-01-02T03:00:00.000Z', '6.1'],
      ]) {
        keepRecord(recordOf({ ...report(), started: started as string, host: { ...report().host, kernel } }), folder)
      }
      expect(readSettings(folder)[0]).toMatchObject({ kernel: '6.2' })
    })
  })
})

function inFolder(work: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-results-'))
  try {
    work(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Renders the page of one run with these jobs. */
function pageOf(jobs: object[] = report().jobs, changes: object = {}): string {
  let page = ''
  inFolder((folder) => {
    keepRecord(recordOf({ ...report(), ...changes, jobs: jobs as never }), folder)
    page = renderPage(readSettings(folder))
  })
  return page
}

describe('the rendered page of results', () => {
  it('names jobs, machines, pass counts and failures', () => {
    const page = pageOf()
    expect(page).toContain(
      '| 2 × NVIDIA H200, 143771 MiB, compute capability 9.0 | 580.159.04 | 13.0 | 2.28.3 | none |',
    )
    expect(page).toContain('| job | 2 GPUs |')
    expect(page).toContain('| demo | **missed**: 0 of 1 limits met |')
    expect(page).toContain('| conformance | **failed**: 1 passed, 1 failed, 1 skipped |')
    expect(page).toContain('| axpy | **failed**: exit status 1 |')
    expect(page).toContain('- 2 GPUs, conformance: driver: two: Error: no|more …/c.ptx\n')
    expect(page).toContain('- 2 GPUs, conformance: 1 needs 4 devices\n')
    expect(page).not.toContain('a line for each case')
  })

  it('has a column per setting', () => {
    inFolder((folder) => {
      keepRecord(recordOf(report()), folder)
      keepRecord(recordOf({ ...report(), jobs: [], host: { ...report().host, gpus: [gpu] } }), folder)
      const page = renderPage(readSettings(folder))
      expect(page).toContain('| job | 1 GPU | 2 GPUs |')
      expect(page).toContain('| demo | – | **missed**: 0 of 1 limits met |')
      keepRecord(recordOf({ ...report(), libraries: [] }), folder)
      expect(renderPage(readSettings(folder))).toContain(
        '| job | 1 GPU, NCCL 2.28.3 | 2 GPUs, NCCL 2.28.3 | 2 GPUs, NCCL none |',
      )
    })
  })

  it('counts the lines of a job that lists its passes', () => {
    const job = { name: 'launchers', status: 'passed', seconds: 1, output: 'mpirun\npassed  one\npassed  two\n' }
    expect(pageOf([job])).toContain('| launchers | 2 passed |')
    expect(pageOf([{ ...job, output: 'all is well' }])).toContain('| launchers | passed |')
    const notRun = { ...job, status: 'not run', reason: 'needs 2 GPUs' }
    expect(pageOf([notRun])).toContain('| launchers | not run: needs 2 GPUs |')
  })

  it("prints readable ratios to C, with C's repeat ratio, and missed limits", () => {
    const bar = { value: 1.118, limit: 1.1, unit: '', side: 'at most', met: false }
    const bars = [
      { ...bar, what: 'small against C', ofCAgain: 1.034 },
      { ...bar, what: 'launch, ratio to C', value: 1.0416, met: true },
      { ...bar, what: 'initRank of 2 ranks against C', value: 0.994, side: 'at least', limit: 0.99, met: true },
      { ...bar, what: 'delay', value: 35.928, limit: 35, unit: ' ns' },
      { ...bar, what: 'import', value: 12, limit: 35, unit: ' ms', met: true },
    ]
    const page = pageOf([{ ...report().jobs[0], data: { bars } }])
    expect(page).toContain('|  | 2 GPUs | limit |')
    expect(page).toContain('| small | **1.12×** (1.03×) | at most 1.10× |')
    expect(page).toContain('| launch | 1.04× | at most 1.10× |')
    expect(page).toContain('| initRank | 0.99× | at least 0.99× |')
    expect(page).toContain('- 2 GPUs, demo: delay: 35.9 ns (at most 35 ns)\n')
    expect(page).not.toContain('import')
  })

  it('counts functions, answers and exchanges', () => {
    const counts = { equal: 90, byNature: 5, different: 1, absent: 0, unasked: 0 }
    const resolve = [
      { library: 'nccl', functions: 83, resolved: 53 },
      { library: 'driver', functions: 10, resolved: 10 },
    ]
    const exchanges = [{ bytes: 4 }, { error: '3 of 9 bytes are wrong' }]
    const page = pageOf([
      { name: 'resolve', status: 'passed', seconds: 2, data: { resolve } },
      {
        name: 'sweep',
        status: 'failed',
        seconds: 30,
        reason: 'exit status 1',
        data: { sweep: [{ counts }, { counts }] },
      },
      { name: 'python-memory', status: 'failed', seconds: 9, data: { interop: { libraries: [], exchanges } } },
    ])
    expect(page).toContain('| resolve | 63 of 93 functions found |')
    expect(page).toContain('| sweep | **failed**: exit status 1; 180 answers equal, 10 differ by nature, 2 wrongly |')
    expect(page).toContain('| python-memory | **failed**: 1 of 2 exchanges |')
  })

  it('groups the faults of the libraries by kind', () => {
    const faults = {
      'reduce avg of f16, 1 ranks, plain memory: refused with 4': [1, 7],
      'allReduce avg of f8e4m3, 1 ranks, plain memory, in place: refused with 4': [1],
      'allGather of u8, 2 ranks, window memory: wrong, elements both': [4097],
      'allGather of u8, 2 ranks, window memory: refused with 99': [1],
    }
    const kinds = [{ kind: 'reduce in place', known: 760, wrong: 639 }]
    const without = ['without atomics: ended (1)\nfetch_add: it changes nothing']
    const page = pageOf(
      [
        {
          name: 'nccl-faults',
          status: 'passed',
          seconds: 9,
          data: { version: 22803, results: 50, faults, unknown: [] },
        },
        { name: 'nvshmem-faults', status: 'passed', seconds: 9, data: { answers: 900, kinds, unknown: [] } },
        { name: 'bench-nvshmem', status: 'passed', seconds: 9, data: { results: { nvshmem: '3.4.5', without } } },
      ],
      { libraries: [...report().libraries, { id: 'nvshmem', found: true, version: '3.4.5' }] },
    )
    expect(page).toContain('| nccl-faults | 50 results, 5 faults, 0 new |')
    expect(page).toContain('| nvshmem-faults | 900 answers, 639 faults, 0 new |')
    expect(page).toContain('| 2.28.3 | 1 | avg | reduce, allReduce | f16, f8e4m3 | ncclInvalidArgument | 3 |')
    expect(page).toMatch(
      /^\| 2\.28\.3 \| 2, window memory \| – \| allGather \| u8 \| elements that are not written.* \| 1 \|$/m,
    )
    expect(page).toContain('| u8 | refused with 99 | 1 |')
    expect(page).toContain('- NVSHMEM 3.4.5: reduce in place: 639 of 760 wrong\n')
    expect(page).toContain('- NVSHMEM 3.4.5: fetch_add: it changes nothing\n')
  })

  it('prints a notice without a result', () => {
    expect(renderPage([])).toContain('No run has been kept so far.')
  })
})

describe('the rendered page of call costs', () => {
  const series = (median: number) => ({ rounds: [median], median, least: median, greatest: median })
  const row = (title: string, ratio: number) => ({
    case: title,
    title,
    unit: 'µs',
    subjects: { C: series(10), awaited: series(10 * ratio) },
    ratioToC: { C: 1, awaited: ratio },
  })
  const bar = { what: 'launch and await, ratio to C', value: 1.31, limit: 1.3, unit: '', side: 'at most', met: false }
  const delay = { waited: 5000, median: 1, percentile99: 2.5, longest: 7, samples: 9 }
  const beside = { tripsPerSecond: 998.7, requests: 2000, median: 0.3, percentile99: 1.25, longest: 4, delay }
  const results = { cases: [row('launch and wait', 1.31)], beside, python: { CuPy: { missing: 'no cupy' } } }
  const settings = [
    {
      gpuCount: 1,
      gpu: 'NVIDIA H200',
      driver: '580',
      libraries: [{ id: 'nccl', version: '2.28.3' }],
      jobs: [
        {
          name: 'bench-costs',
          started: '2026-01-02T03:04:05.000Z',
          commit: '0123456789',
          data: { results, bars: [bar] },
        },
        { name: 'bench-short-calls', started: '2026-01-02', data: { results: [row('fill', 60)], bars: [] } },
        {
          name: 'bench-import',
          started: '2026-01-03',
          data: {
            results: {
              bareNodeStart: series(60),
              packages: [
                { package: 'an empty package', importMilliseconds: series(1), ofBareStart: 0.02 },
                {
                  package: '@shoal/x',
                  importMilliseconds: series(24),
                  ofBareStart: 0.4,
                  bytesOverBareNode: series(2 ** 23),
                },
              ],
            },
          },
        },
      ],
    },
    { gpuCount: 2, gpu: 'NVIDIA H200', driver: '580', libraries: [], jobs: [] },
  ].map((setting) => ({ ...setting, jobs: setting.jobs.map((job) => ({ ...job, ...digestOf(job) })) }))

  it('has the figures of each job, with ratios to C and missed limits', () => {
    const page = renderCosts(settings)
    expect(page).toContain('| launch and wait | µs | 10.0 | 13.1 (1.31) |')
    expect(page).toContain('2026-01-02, commit 0123456.')
    expect(page).toContain(
      'as 999 round trips of 64 KiB a second: 2000 requests, median 0.300 ms, 99th percentile 1.25 ms',
    )
    expect(page).toContain('Without CuPy.')
    expect(page).toContain('- launch and await, ratio to C: 1.31 (at most 1.3)')
    // On the null driver a ratio has no meaning.
    expect(page).toContain('| fill | µs | 10.0 | 600 |')
    expect(page).toContain('| `@shoal/x` | 24.0 | 0.400 | 8.00 |')
    expect(page).toContain('| an empty package | 1.00 | 0.0200 | – |')
    expect(page).not.toContain('2 × NVIDIA')
  })

  it('prints a notice without a result', () => {
    expect(renderCosts([])).toContain('No run has been kept so far.')
  })
})

describe('docs/hardware', () => {
  it('keeps digests instead of job output', () => {
    const files = readdirSync(resultsFolder).map((file) => readFileSync(join(resultsFolder, file), 'utf8'))
    expect(files.join('').split('\n').length).toBeLessThan(4000)
    expect(files.join('')).not.toMatch(/"(?:output|rounds|outcome)"/)
  })

  it('is rendered from the kept results', () => {
    const script = fileURLToPath(new URL('../hardware.mjs', import.meta.url))
    const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status).toBe(0)
  })

  it('is one page of readable length', () => {
    const page = readFileSync(new URL('../../../docs/hardware/README.md', import.meta.url), 'utf8')
    expect(page.split('\n').length).toBeLessThanOrEqual(150)
  })
})
