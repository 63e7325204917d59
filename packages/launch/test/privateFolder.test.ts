import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { PrivateFolder } from '../src/rendezvous/privateFolder.js'

let runtime = ''

beforeEach(() => {
  runtime = mkdtempSync(join(tmpdir(), 'r-'))
  vi.stubEnv('XDG_RUNTIME_DIR', runtime)
})

afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(runtime, { recursive: true })
})

const modeOf = (path: string): number => statSync(path).mode & 0o777

test('create() makes the folders for the first job on a machine, accessible to the user only', () => {
  const folder = new PrivateFolder('job')
  expect(folder.target()).toBeUndefined()
  folder.create('secret')
  const [base = ''] = readdirSync(runtime)
  expect([modeOf(join(runtime, base)), modeOf(folder.path)]).toEqual([0o700, 0o700])
  expect(modeOf(join(folder.path, 'secret'))).toBe(0o600)
  const target = folder.target()
  expect(target?.address).toEqual({ kind: 'unix', path: folder.socket })
  expect(String(target?.secret)).toBe('secret')
})

test('create() replaces files of an earlier job with the same name', () => {
  new PrivateFolder('job').create('first')
  const folder = new PrivateFolder('job')
  folder.create('second')
  expect(readFileSync(join(folder.path, 'secret'), 'utf8')).toBe('second')
})

test('a folder that other users can enter is refused by name', () => {
  const folder = new PrivateFolder('job')
  folder.create('secret')
  const base = join(folder.path, '..')
  chmodSync(base, 0o755)
  expect(() => folder.create('secret')).toThrow(/can be entered by others/)
  expect(() => folder.target()).toThrow(/can be entered by others/)
})
