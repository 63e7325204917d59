import { spawnSync } from 'node:child_process'
import { inspect } from 'node:util'
import * as driver from '@shoal/driver'
import * as compile from '@shoal/driver/compile'
import * as ffi from '@shoal/ffi'
import * as nccl from '@shoal/nccl'
import * as nvshmem from '@shoal/nvshmem'
import * as runtime from '@shoal/runtime'
import * as types from '@shoal/types'
import { ShoalError } from '@shoal/types'
import { expect, test } from 'vitest'
import * as launch from '../../../packages/launch/dist/index.js'

const text = 'a line of a text that nobody limits\n'.repeat(2000)
const many = Array.from({ length: 10_000 }, (_, index) => index)
const attempts = many.slice(0, 1700).map((index) => ({
  step: 'wheel',
  candidate: `/opt/${index}/libnccl.so.2`,
  outcome: index % 100 === 0 ? text : 'not there',
}))
const log = `${'k.cu(1): error: no instance of a function\n            argument types are: (int)\n'.repeat(3000)}\n`
const cause = new types.SystemError({ api: text, value: text, cause: new Error(text, { cause: new Error(text) }) })

/** Every option that a constructor reads, as long as possible. */
const options = {
  ...{
    api: text,
    operation: text,
    object: text,
    library: text,
    reason: text,
    hint: text,
    hints: [text, text, text, text, text, text],
  },
  ...{ symbol: text, path: text, installed: text, since: text, known: text, signatureOf: text, environment: text },
  ...{
    code: text,
    description: text,
    lastError: text,
    libraryVersion: text,
    platform: text,
    underWay: text,
    value: text,
  },
  ...{ parameter: text, state: text, lastOperation: text, users: many, lostRanks: many, attempts, log, cause },
  ...{ status: 1, rank: 1, worldSize: 2, deviceOrdinal: 0, user: 7, isSticky: true, timeout: 1e9, parts: text },
}
const positional: Readonly<Record<string, readonly unknown[]>> = {
  CompileError: [{ ...options, hint: () => text }],
  GroupStateError: [text, text],
  RanksLostError: [many, 'lost', text],
  RendezvousTimeoutError: [text, 1, many, text],
  SessionStuckError: [text, text, cause],
  SessionExistsError: [text, { cause }],
  LaunchEnvironmentError: [text, { cause }],
  RendezvousError: [text, { cause }],
  RendezvousLostError: [text, { cause }],
}

const packages = { types, ffi, driver, compile, runtime, nccl, nvshmem, launch }
const classes = new Map<string, new (...data: readonly unknown[]) => ShoalError>(
  Object.values(packages)
    .flatMap((each) => Object.entries(each as Record<string, unknown>))
    .filter(
      ([name, value]) => typeof value === 'function' && name !== 'ShoalError' && value.prototype instanceof ShoalError,
    )
    .map(([name, value]) => [name, value as never]),
)

test('every error class is covered', () => {
  expect(classes.size).toBeGreaterThan(25)
})

test.each([...classes.keys()])('a %s with the longest data prints at most 15 lines', (name) => {
  const Class = classes.get(name) as new (...data: readonly unknown[]) => ShoalError
  const error = new Class(...(positional[name] ?? [options]))
  expect(error.stack).toContain('printedErrors.test')
  for (const colors of [false, true]) {
    const lines = inspect(error, { colors }).split('\n')
    expect(lines.length, lines.join('\n')).toBeLessThanOrEqual(15)
    for (const line of lines) expect(line.length).toBeLessThan(1000)
    expect(lines[0]).toContain(name)
    expect(lines.join('\n')).toContain('printedErrors.test')
  }
  expect(inspect({ error }).split('\n').length).toBeLessThanOrEqual(20)
  expect(JSON.parse(JSON.stringify(error))).toMatchObject({ name })
})

test('the uncaught error for a missing library shows the caller and a remedy on one screen', () => {
  const program = `import { Device } from '@shoal/driver'
    function caller() { return Device.get(0) }
    caller()`
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: new URL('../', import.meta.url),
    encoding: 'utf8',
    env: { ...process.env, SHOAL_DEVICE: '', SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' },
  })
  expect(stderr).toContain('LibraryNotFoundError: Cannot load')
  expect(stderr).toContain('at caller')
  expect(stderr.trimEnd().split('\n').length, stderr).toBeLessThanOrEqual(25)
})
