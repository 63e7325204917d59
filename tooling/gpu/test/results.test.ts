import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { renderPage } from '../src/page.mjs'
import { keepRecord, readRecords, recordOf } from '../src/results.mjs'

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
              error: 'Error: no|more\n  at x',
              notes: [],
            },
            { suite: 'driver', name: 'three', outcome: 'skip', milliseconds: 0, reason: 'needs 4 devices', notes: [] },
          ],
        },
      },
      { name: 'axpy', status: 'failed', seconds: 2, reason: 'exit status 1', output: 'cannot open /opt/a/b/c.ptx\n' },
    ],
  }
}

describe('results of a GPU host', () => {
  it('keeps file names but no folders of the host', () => {
    const kept = JSON.stringify(recordOf(report()))
    expect(kept).toContain('libnccl.so.2')
    expect(kept).toContain('…/c.ptx')
    expect(kept).not.toMatch(/\/usr\/|\/opt\//)
  })

  it('refuses a run without a GPU', () => {
    expect(() => recordOf({ ...report(), software: true })).toThrow('software device')
    expect(() => recordOf({ ...report(), host: { ...report().host, gpus: [] } })).toThrow('no GPU')
  })

  it('gives every run a file of its own, and shows the newest of each job of each setting', () => {
    const folder = mkdtempSync(join(tmpdir(), 'shoal-results-'))
    try {
      keepRecord(recordOf(report()), folder)
      keepRecord(recordOf({ ...report(), started: '2026-01-02T09:00:00.000Z' }), folder)
      expect(readdirSync(folder)).toEqual(['2026-01-02-nvidia-h200x2-2.json', '2026-01-02-nvidia-h200x2.json'])
      const page = renderPage(readRecords(folder))
      expect(page.match(/^\| \[2026-01-02/gm)).toHaveLength(2)
      expect(page.match(/^## NVIDIA H200 × 2/gm)).toHaveLength(1)
      expect(page).toContain('| launch | 1.20× | at most 1.05× | **no** |')
      expect(page).toContain('1 passed, 1 failed, 1 skipped.')
      expect(page).toContain('| driver: two | **failed** | Error: no\\|more |')
      expect(page).toContain('| driver: three | skipped | needs 4 devices |')
      expect(page).not.toContain('driver: one')
      expect(page).not.toContain('a line for each case')
      expect(page).toMatch(/^\| axpy \| failed: exit status 1 \| 2 \| \[2026-01-02 09:00\]\(results\/.*\) \|$/m)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

it('shows what C makes of itself beside the figures that have it', () => {
  const bar = { value: 1.12, limit: 1.1, unit: '', side: 'at most', met: false }
  const bars = [
    { ...bar, what: 'small', ofCAgain: 1.13 },
    { ...bar, what: 'other' },
  ]
  const jobs = [{ ...report().jobs[0], data: { bars } }]
  const page = renderPage([{ file: 'a.json', record: recordOf({ ...report(), jobs }) }])
  expect(page).toContain('| bar | measured | wanted | met | C against itself |')
  expect(page).toContain('| small | 1.12 | at most 1.1 | **no** | 1.13 |')
  expect(page).toContain('| other | 1.12 | at most 1.1 | **no** | – |')
})

describe('the page, of runs of some jobs each', () => {
  const [demo, , axpy] = report().jobs
  const record = (started: string, jobs: readonly unknown[], nccl = '2.28.3') =>
    recordOf({ ...report(), started, jobs, libraries: [{ ...report().libraries[0], version: nccl }] })
  // Newest first, as they are read.
  const page = renderPage([
    { file: 'c.json', record: record('2026-01-03T00:00:00.000Z', [demo], '2.30.7') },
    { file: 'b.json', record: record('2026-01-02T00:00:00.000Z', [{ ...axpy, status: 'passed', reason: undefined }]) },
    { file: 'a.json', record: record('2026-01-01T00:00:00.000Z', [demo, axpy]) },
  ])

  it('has what a later run left out from the one before', () => {
    expect(page).toContain('| demo | passed | 1.2 | [2026-01-01 00:00](results/a.json) |')
    expect(page).toContain('| axpy | passed | 2 | [2026-01-02 00:00](results/b.json) |')
    expect(page).not.toContain('exit status 1')
  })

  it('keeps libraries of other versions apart', () => {
    expect(page).toContain('## NVIDIA H200 × 2, NCCL 2.28.3')
    expect(page.slice(page.indexOf('## NVIDIA H200 × 2, NCCL 2.30.7'))).toContain('(results/c.json)')
  })
})

describe('the page, of the jobs that look at the raw packages', () => {
  const counts = { equal: 90, byNature: 5, different: 1, absent: 0, unasked: 0 }
  const jobs = [
    {
      name: 'resolve',
      status: 'passed',
      seconds: 1,
      output: 'what the tables say',
      data: {
        resolve: [
          {
            ...{ library: 'nccl', version: '2.28.3', mode: 'legacy', functions: 83, resolved: 53, gated: 30 },
            ...{ missing: 0, unexplained: 0 },
          },
        ],
        notResolved: [
          {
            ...{ library: 'nccl', version: '2.28.3', outcome: 'gated', reason: 'since 2.30.3, installed 2.28.3' },
            names: ['ncclPutSignal', 'ncclSignal'],
          },
        ],
        problems: [],
      },
    },
    {
      name: 'sweep',
      status: 'failed',
      seconds: 9,
      output: 'FAIL: and so on',
      data: {
        sweep: [{ library: 'driver', version: '13.0', mode: 'legacy', groups: 16, counts }],
        differences: [{ group: 'driver-device', question: 'cuInit(0)', details: ['status: 0 in Shoal, 1 in C++'] }],
        byNature: [{ reason: 'a handle of this process', calls: ['cuCtxGetCurrent'] }],
        notRun: [],
        problems: ['driver-device: cuInit(0)'],
      },
    },
  ]

  it('shows how many functions resolve and how many answers were equal', () => {
    const page = renderPage([{ file: 'one.json', record: recordOf({ ...report(), jobs }) }])
    expect(page).toContain('| nccl 2.28.3 | legacy | 83 | 53 | 30 | 0 | 0 |')
    expect(page).toContain('| nccl 2.28.3 | gated | since 2.30.3, installed 2.28.3 | 2: ncclPutSignal, ncclSignal |')
    expect(page).not.toContain('what the tables say')
    expect(page).toContain('| driver 13.0 | legacy | 16 | 96 | 90 | 5 | 1 | 0 | 0 |')
    expect(page).toContain('| driver-device | cuInit(0) | status: 0 in Shoal, 1 in C++ |')
    expect(page).toContain('| a handle of this process | cuCtxGetCurrent |')
    expect(page).toContain('FAIL: and so on')
  })
})

describe('the page, of memory between Node and Python', () => {
  const title = 'POSIX descriptor'
  const about = { library: 'CuPy', way: 'descriptor', title }
  const jobs = [
    {
      name: 'python-memory',
      status: 'failed',
      seconds: 9,
      output: 'what the job printed',
      data: {
        interop: {
          device: 'NVIDIA H200',
          libraries: [
            { library: 'CuPy', version: '14.2', python: '3.12' },
            { library: 'PyTorch', error: 'the Python package torch is missing\n  at x' },
          ],
          exchanges: [
            { ...about, direction: 'Node → Python', bytes: 4194304, milliseconds: 3 },
            { ...about, direction: 'Python → Node', error: '3 of 9 bytes are wrong' },
          ],
        },
      },
    },
  ]

  it('shows for each library what went through and what failed', () => {
    const page = renderPage([{ file: 'one.json', record: recordOf({ ...report(), jobs }) }])
    expect(page).toContain('| every byte compared on both sides | CuPy 14.2 | PyTorch (failed) |')
    expect(page).toContain('| Node → Python, POSIX descriptor | 4194304 bytes | – |')
    expect(page).toContain('| Python → Node, POSIX descriptor | **failed**: 3 of 9 bytes are wrong | – |')
    expect(page).toContain('PyTorch: the Python package torch is missing\n')
    expect(page).toContain('what the job printed')
  })
})

describe('docs/hardware', () => {
  it('is rendered from the kept results', () => {
    const script = fileURLToPath(new URL('../hardware.mjs', import.meta.url))
    const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status).toBe(0)
  })
})
