import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findHeaders } from '@shoal/bindgen/dist/parse/headers.js'
import { describe, expect, it } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { readSpecs, type Spec } from '../dist/spec.js'
import { buildFakeLibrary, type Faults } from './fakeLibrary.js'

const script = fileURLToPath(new URL('../dist/run.js', import.meta.url))
const specs = readSpecs(fileURLToPath(new URL('../../bindgen/spec', import.meta.url)))
/** The tests compile programs and start about sixty processes. This takes minutes while other tests run. */
const timeout = 300_000
const include = findHeaders({}).cuda
const compiler = spawnSync('g++', ['--version']).status === 0
const lacking = include === undefined ? 'there are no CUDA headers' : compiler ? undefined : 'there is no g++'

interface Data {
  sweep: { library: string; mode: string; groups: number; counts: Record<string, number> }[]
  differences: { group: string; question: string; details: string[] }[]
  byNature: { reason: string; calls: string[] }[]
  problems: string[]
}

const folder = scratchFolder()

function run(
  libraries: string,
  environment: NodeJS.ProcessEnv,
  ...more: string[]
): { status: number | null; output: string; data: Data } {
  const json = join(folder, 'report.json')
  const { SHOAL_EXPECT_GPU: _, ...inherited } = process.env
  // All runs that ask the whole list share one compiled program of the driver.
  const work = ['--work', join(folder, more.length === 0 ? 'work' : 'other')]
  const given = ['--libraries', libraries, '--json', json, ...work, ...more]
  const result = spawnSync(process.execPath, [script, 'sweep', ...given], {
    encoding: 'utf8',
    env: { ...inherited, SHOAL_KERNELS: folder, ...environment },
  })
  expect(result.stderr).toBe('')
  const data = JSON.parse(readFileSync(json, 'utf8')) as Data
  return { status: result.status, output: result.stdout, data }
}

const fake = (library: 'driver' | 'runtime', faults: Faults = {}): Promise<string> =>
  buildFakeLibrary(specs.get(library) as Spec, library, include as string, folder, faults)

describe('the sweep, on the software device', () => {
  it('has the same answers from C++ and through Shoal', { timeout }, (context) => {
    if (lacking) context.skip(lacking)
    const { status, output, data } = run('driver', { SHOAL_DEVICE: 'sim' })
    expect(output).not.toContain('FAIL')
    expect(status).toBe(0)
    expect(data.differences).toEqual([])
    const [legacy, perThread] = data.sweep
    expect(legacy).toMatchObject({ mode: 'legacy' })
    expect(legacy?.counts['equal']).toBeGreaterThan(500)
    expect(legacy?.counts['byNature']).toBeGreaterThan(100)
    expect(perThread?.mode).toBe('per-thread')
    expect(perThread?.counts['equal']).toBeGreaterThan(100)
  })
})

describe('the sweep, on libraries that answer every question', () => {
  it('calls the same functions of driver and runtime from both sides', { timeout }, async (context) => {
    if (lacking) context.skip(lacking)
    const environment = { SHOAL_CUDA_LIBRARY: await fake('driver'), SHOAL_CUDART_LIBRARY: await fake('runtime') }
    const { status, output, data } = run('driver,runtime', environment)
    expect(data.differences).toEqual([])
    expect(output).not.toContain('FAIL')
    expect(status).toBe(0)
    for (const { library, mode, counts } of data.sweep) {
      if (mode !== 'legacy') continue
      expect(counts, library).toMatchObject({ unasked: 0, different: 0 })
      // Only questions of cuGetProcAddress are absent, because a fake one would return addresses of nothing.
      expect(counts['absent'], library).toBe(library === 'driver' ? 90 : 0)
    }
  })

  it('reports a wrong byte, an overrun, and a crash with its location', { timeout }, async (context) => {
    if (lacking) context.skip(lacking)
    const library = await fake('driver', {
      lies: 'cuDeviceTotalMem',
      overruns: 'cuCtxGetFlags',
      crashes: 'cuMemPoolGetAccess',
    })
    const groups = ['driver-errors', 'driver-device', 'driver-context', 'driver-pools']
    const { status, data } = run('driver', { SHOAL_CUDA_LIBRARY: library }, '--groups', groups.join(','))
    expect(status).toBe(1)
    const of = (name: string) => data.differences.filter(({ group }) => group === name)
    expect(of('driver-errors')).toEqual([])
    expect(of('driver-device').map(({ question }) => question)).toEqual(['cuDeviceTotalMem(out size_t, device)'])
    expect(of('driver-device')[0]?.details.join()).toMatch(/from byte 1: .* in Shoal, .* in C\+\+/)
    expect(of('driver-context').map(({ question }) => question)).toEqual(['cuCtxGetFlags(out unsigned int)'])
    expect(of('driver-context')[0]?.details).toEqual(['the library wrote beyond an out-parameter'])
    expect(of('driver-pools')[0]?.details).toEqual(['Shoal did not answer'])
    expect(data.problems[0]).toMatch(/driver-pools: Shoal ended after or during cuMemPoolGetAccess\(.*SIGSEGV/)
  })
})

describe('the sweep, on the installed NCCL and NVSHMEM', () => {
  for (const [library, variable] of [
    ['nccl', 'SHOAL_NCCL_LIBRARY'],
    ['nvshmem', 'SHOAL_NVSHMEM_LIBRARY'],
  ] as const) {
    it(`has the same answers of ${library}`, { timeout }, (context) => {
      const file = process.env[variable]
      if (!file || !existsSync(file)) context.skip(`${variable} does not name a library`)
      if (lacking) context.skip(lacking)
      const { status, data } = run(library, { SHOAL_DEVICE: '' })
      expect(data.problems).toEqual([])
      expect(status).toBe(0)
      expect(data.sweep[0]?.counts['equal']).toBeGreaterThan(3)
    })
  }
})
