import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { libraries, libraryFolder } from '@shoal/sim'
import { expect, test } from 'vitest'

const paths = { cuda: join(libraryFolder(), libraries.cuda), nccl: join(libraryFolder(), libraries.nccl) }
const exportsOf = (path: string) =>
  execFileSync('nm', ['-D', '--defined-only', path], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.split(' ').at(-1) as string)
const dynamic = (path: string) => execFileSync('readelf', ['-dW', path], { encoding: 'utf8' })

test('the libraries lie in an absolute folder of this platform', () => {
  expect(isAbsolute(libraryFolder())).toBe(true)
  expect(libraryFolder().endsWith(`${process.platform}-${process.arch}`)).toBe(true)
  expect(existsSync(paths.cuda) && existsSync(paths.nccl)).toBe(true)
})

test('nothing but the C ABI is exported', () => {
  for (const name of exportsOf(paths.cuda)) expect(name).toMatch(/^(cu[A-Z]\w*|shoalSim\w+)$/)
  for (const name of exportsOf(paths.nccl)) expect(name).toMatch(/^nccl[A-Z]\w*$/)
})

test('the NCCL library finds the CUDA library beside it, and both need only the C library', () => {
  const needed = (path: string) =>
    [...dynamic(path).matchAll(/\(NEEDED\).*\[(.+)\]/g)].map((match) => match[1] as string)
  expect(needed(paths.nccl)).toContain(libraries.cuda)
  expect(dynamic(paths.nccl)).toMatch(/RUNPATH.*\[\$ORIGIN\]/)
  for (const name of [...needed(paths.cuda), ...needed(paths.nccl)]) {
    if (name !== libraries.cuda) expect(name).toMatch(/^(libc|libm|libpthread|librt|ld-linux.*)\.so/)
  }
})

test('the libraries stay loaded: streams may still run when they are closed', () => {
  for (const path of Object.values(paths)) expect(dynamic(path)).toMatch(/NODELETE/)
})
