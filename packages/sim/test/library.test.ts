import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { libraries, libraryFolder } from '@shoal/sim'
import { expect, test } from 'vitest'

const pathOf = (library: keyof typeof libraries) => join(libraryFolder(), libraries[library])
const paths = { cuda: pathOf('cuda'), nccl: pathOf('nccl'), nvshmem: pathOf('nvshmem') }
const engine = join(libraryFolder(), 'libshoal-sim-ptx.so.1')
const exportsOf = (path: string) =>
  execFileSync('nm', ['-D', '--defined-only', path], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.split(' ').at(-1) as string)
const dynamic = (path: string) => execFileSync('readelf', ['-dW', path], { encoding: 'utf8' })

test('the software libraries are in an absolute folder of this platform', () => {
  expect(isAbsolute(libraryFolder())).toBe(true)
  expect(libraryFolder().endsWith(`${process.platform}-${process.arch}`)).toBe(true)
  for (const path of Object.values(paths)) expect(existsSync(path)).toBe(true)
})

test('the software libraries export only the C ABI', () => {
  // The PTX engine uses symbols of the driver's library in the namespace `shoal`.
  for (const name of exportsOf(paths.cuda)) expect(name).toMatch(/^(cu[A-Z]\w*|shoalSim\w+|_ZNK?5shoal\w+)$/)
  expect(exportsOf(engine)).toEqual(['shoalSimPtxEngine'])
  for (const name of exportsOf(paths.nvshmem))
    expect(name).toMatch(/^(nvshmemx?_\w+|nvshmemid_\w+|shoalSimNvshmem\w+)$/)
  for (const name of exportsOf(paths.nccl)) expect(name).toMatch(/^(nccl[A-Z]\w*|shoalSimNccl\w+)$/)
})

test('software NVSHMEM has every host function of the spec', () => {
  const spec = new URL('../../../tooling/bindgen/spec/nvshmem.json', import.meta.url)
  const { functions } = JSON.parse(readFileSync(spec, 'utf8')) as { functions: { name: string }[] }
  const exported = new Set(exportsOf(paths.nvshmem))
  expect(functions.length).toBeGreaterThan(1400)
  expect(functions.filter(({ name }) => !exported.has(name))).toEqual([])
})

test('software NCCL, NVSHMEM and the PTX engine find the CUDA library next to them, and need only the C library', () => {
  const needed = (path: string) =>
    [...dynamic(path).matchAll(/\(NEEDED\).*\[(.+)\]/g)].map((match) => match[1] as string)
  for (const path of [paths.nccl, paths.nvshmem, engine]) {
    expect(needed(path)).toContain(libraries.cuda)
    expect(dynamic(path)).toMatch(/RUNPATH.*\[\$ORIGIN\]/)
  }
  for (const name of [...Object.values(paths), engine].flatMap(needed)) {
    if (name !== libraries.cuda) expect(name).toMatch(/^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so/)
  }
})

test('the software libraries stay loaded, because streams may still run when they are closed', () => {
  for (const path of [...Object.values(paths), engine]) expect(dynamic(path)).toMatch(/NODELETE/)
})
