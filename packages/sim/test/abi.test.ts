import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compile, headerFolder, nativeFolder, readFacts } from './build.js'

const cuda = headerFolder('cuda.h')
const nccl = headerFolder('nccl.h', process.env['NCCL_HOME'])
const nvshmem = headerFolder('nvshmem_host.h', process.env['NVSHMEM_HOME'])

const facts = (options: readonly string[], program: string, source = 'test/layouts/cuda_and_nccl.cc') =>
  readFacts(execFileSync(compile(source, program, options), { encoding: 'utf8' }))

const noToolkit = 'no CUDA toolkit on this machine: set CUDA_HOME'

test("layouts and values are those of NVIDIA's headers", ({ skip }) => {
  if (cuda === undefined) return skip(noToolkit)
  const options = ['-DSHOAL_REFERENCE', '-I', cuda]
  if (nccl !== undefined) options.push('-DSHOAL_REFERENCE_NCCL', '-I', nccl)
  const own = facts([], 'abi-own')
  const reference = facts(options, 'abi-reference')
  expect(reference.size).toBeGreaterThan(60)
  for (const [name, value] of reference) expect(`${name} = ${own.get(name)}`).toBe(`${name} = ${value}`)
})

test("NVSHMEM's layouts and values are those of NVIDIA's headers", ({ skip }) => {
  if (cuda === undefined) return skip(noToolkit)
  if (nvshmem === undefined) return skip('no NVSHMEM headers on this machine: set NVSHMEM_HOME')
  const source = 'test/layouts/nvshmem.cc'
  const options = ['-w', '-DSHOAL_REFERENCE', '-I', nvshmem, '-I', cuda]
  const own = facts([], 'nvshmem-abi-own', source)
  const reference = facts(options, 'nvshmem-abi-reference', source)
  expect(reference.size).toBeGreaterThan(50)
  for (const [name, value] of reference) expect(`${name} = ${own.get(name)}`).toBe(`${name} = ${value}`)
})

test("entry points and their versions are those of NVIDIA's headers", ({ skip }) => {
  if (cuda === undefined) return skip(noToolkit)
  const folder = cuda
  const headers = ['cudaTypedefs.h', 'cudaProfilerTypedefs.h']
  const types = headers.map((header) => readFileSync(join(folder, header), 'utf8')).join('\n')
  const known = new Set(
    [...types.matchAll(/\bPFN_(cu\w+?)_v(\d+)(_pt[ds][sz])?\)/g)].map(([, ...parts]) => parts.join(' ')),
  )
  const source = readFileSync(join(nativeFolder, 'cuda', 'entryPoints.gen.h'), 'utf8')
  const table = [...source.matchAll(/SHOAL_(ONE|TWO)\("(\w+)", (\d+), \w+(?:, (\d+), \w+?(_pt[ds][sz]))?\)/g)]
  expect(table.length).toBeGreaterThan(150)
  for (const [, , name, version, ownVersion, suffix] of table) {
    expect(known).toContain(`${name} ${version} `)
    if (suffix) expect(known).toContain(`${name} ${ownVersion} ${suffix}`)
  }
})
