import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
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
