import { mkdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { NativeLibrary } from '@shoal/ffi'
import { afterEach, expect, test, vi } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { compileStub } from './support/stub.js'

const scratch = scratchFolder()
let count = 0

afterEach(() => vi.unstubAllEnvs())

/** Builds a library with a new name, moves it to the folder and searches for it. */
function search(folder: string, environment: Record<string, string>): { path: string; step: string; file: string } {
  const name = `folders${(count += 1)}`
  const file = join(scratch, folder, `${name}.so`)
  mkdirSync(dirname(file), { recursive: true })
  renameSync(compileStub(name, 'int f(void) { return 1; }'), file)
  for (const [variable, value] of Object.entries(environment)) vi.stubEnv(variable, join(scratch, value))
  const places = { id: name, title: name, environment: 'NONE_OF_THESE', linux: [`${name}.so`], hint: 'none' }
  const { path, step } = new NativeLibrary(places).load()
  return { path, step, file }
}

test.each([
  ['conda/lib', 'conda', { CONDA_PREFIX: 'conda' }],
  ['conda/targets/x86_64-linux/lib', 'conda', { CONDA_PREFIX: 'conda' }],
  ['cuda/targets/sbsa-linux/lib', 'cuda-home', { CUDA_HOME: 'cuda' }],
])('a library of any package is found in %s', (folder, step, environment) => {
  const { file, ...found } = search(folder, environment)
  expect(found).toEqual({ path: file, step })
})
