import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { copyPackages } from '../src/copyPackages.mjs'

const folder = scratchFolder()

it('programs of the GPU jobs load from the copied packages', { timeout: 120_000 }, () => {
  const names = ['sweep', 'conformance', 'bench']
  copyPackages(
    names.map((name) => `tooling/${name}`),
    join(folder, 'node_modules'),
  )
  for (const program of [
    'sweep/dist/run.js',
    'conformance/dist/run.js',
    'conformance/dist/reference/run.js',
    'bench/dist/main.js',
  ]) {
    const { status, stderr } = spawnSync(process.execPath, [join(folder, 'node_modules/@shoal', program), '--help'], {
      encoding: 'utf8',
    })
    expect({ program, status, stderr }).toEqual({ program, status: 0, stderr: '' })
  }
  // The package reads its lists and answers only when it needs them.
  const corners = join(folder, 'node_modules/@shoal/sweep/dist/askCorners.js')
  const script = `const { recordedAnswers } = await import(${JSON.stringify(corners)}); recordedAnswers('cuda')`
  expect(spawnSync(process.execPath, ['--input-type=module', '-e', script]).status).toBe(0)
})
