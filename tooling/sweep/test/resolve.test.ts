import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compileLibrary } from '@shoal/bindgen/dist/proof/compile.js'
import { earlierLibrary } from '@shoal/bindgen/dist/proof/versions.js'
import type { LibrarySpecFile } from '@shoal/bindgen/dist/spec/types.js'
import { describe, expect, it } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'

const script = fileURLToPath(new URL('../dist/run.js', import.meta.url))
const specFolder = fileURLToPath(new URL('../../bindgen/spec', import.meta.url))
const timeout = 120_000

interface Row {
  library: string
  mode: string
  functions: number
  resolved: number
  gated: number
  missing: number
  unexplained: number
}

const folder = scratchFolder()

function run(environment: NodeJS.ProcessEnv, ...more: string[]) {
  const json = join(folder, 'report.json')
  const { SHOAL_EXPECT_GPU: _, ...inherited } = process.env
  const result = spawnSync(process.execPath, [script, 'resolve', '--json', json, ...more], {
    encoding: 'utf8',
    env: { ...inherited, ...environment },
  })
  const data = JSON.parse(readFileSync(json, 'utf8')) as { resolve: Row[]; problems: string[] }
  return { status: result.status, output: result.stdout, data }
}

/** A library whose functions do nothing, and which reports to be of CUDA 13.0. */
function stub(functions: LibrarySpecFile['functions']): string {
  const bodies = functions.map(({ symbol }) =>
    symbol === 'nvmlSystemGetCudaDriverVersion'
      ? `int ${symbol}(int* version) { *version = 13000; return 0; }`
      : `int ${symbol}() { return 0; }`,
  )
  return `extern "C" {\n${bodies.join('\n')}\n}\n`
}

describe('resolving every function of a library', () => {
  it('counts each function of the driver once, in both stream modes', { timeout }, () => {
    const { status, data } = run({ SHOAL_DEVICE: 'sim' }, '--libraries', 'driver')
    expect(status).toBe(0)
    expect(data.resolve.map(({ mode }) => mode)).toEqual(['legacy', 'per-thread'])
    for (const { functions, resolved, gated, missing } of data.resolve) {
      expect(resolved).toBeGreaterThan(100)
      expect(resolved + gated + missing).toBe(functions)
    }
  })

  it('fails if an expected GPU is missing', { timeout }, () => {
    const { status, output } = run({ SHOAL_DEVICE: 'sim', SHOAL_EXPECT_GPU: '1' }, '--libraries', 'driver')
    expect(output).toContain('FAIL: a GPU was expected')
    expect(status).toBe(1)
  })

  it('looks up the functions of NVML, and gates those that are newer than it', { timeout }, async () => {
    const spec = JSON.parse(readFileSync(join(specFolder, 'nvml.json'), 'utf8')) as LibrarySpecFile
    const older = earlierLibrary(spec, 13_000)
    const file = await compileLibrary(folder, 'nvml', [stub(older.functions)])
    const environment = { SHOAL_NVML_LIBRARY: file, SHOAL_DEVICE: '' }
    const { status, data } = run(environment, '--libraries', 'nvml')
    expect(data.problems).toEqual([])
    expect(status).toBe(0)
    const [functions, resolved] = [spec.functions.length, older.functions.length]
    expect(resolved).toBeLessThan(functions)
    expect(data.resolve).toMatchObject([
      { library: 'nvml', functions, resolved, gated: functions - resolved, missing: 0 },
    ])

    const without = older.functions.filter(({ name }) => name !== 'nvmlDeviceGetName')
    const incomplete = await compileLibrary(folder, 'nvml-incomplete', [stub(without)])
    const wrong = run({ ...environment, SHOAL_NVML_LIBRARY: incomplete }, '--libraries', 'nvml')
    expect(wrong.status).toBe(1)
    expect(wrong.data.problems.join()).toContain('nvmlDeviceGetName')
  })

  for (const [library, variable] of [
    ['runtime', 'SHOAL_CUDART_LIBRARY'],
    ['nccl', 'SHOAL_NCCL_LIBRARY'],
    ['nvshmem', 'SHOAL_NVSHMEM_LIBRARY'],
  ] as const) {
    const file = process.env[variable] || (library === 'runtime' ? '/usr/local/cuda/lib64/libcudart.so.13' : '')

    it(`finds every function of an installed ${library}, and detects a missing one`, { timeout }, (context) => {
      if (!existsSync(file)) context.skip(`${variable} does not name a library`)
      const environment = { [variable]: file, SHOAL_DEVICE: '' }
      const right = run(environment, '--libraries', library)
      expect(right.data.problems).toEqual([])
      expect(right.status).toBe(0)

      const wrong = join(folder, `spec-${library}`)
      cpSync(specFolder, wrong, { recursive: true })
      const specFile = join(wrong, `${library}.json`)
      const spec = JSON.parse(readFileSync(specFile, 'utf8'))
      spec.functions.push({
        ...spec.functions[0],
        name: 'noSuchFunction',
        symbol: 'noSuchFunction',
        lookup: 'noSuchFunction',
      })
      writeFileSync(specFile, JSON.stringify(spec))
      const { status, data } = run(environment, '--libraries', library, '--spec', wrong)
      expect(status).toBe(1)
      expect(data.problems.join()).toContain('noSuchFunction')
      expect(data.resolve[0]?.unexplained).toBe(1)
    })
  }
})
