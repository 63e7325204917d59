import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'
import { compile } from './support/shim.js'

const empty = compile('empty')
const withoutDevice = compile('noDevice')
const folder = dirname(empty)
const notElf = join(folder, 'text.so')
const cutOff = join(folder, 'cutOff.so')
writeFileSync(notElf, 'this is a text\n')
writeFileSync(cutOff, Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 2, 1, 1))

interface Failure {
  readonly name: string
  readonly code: string
  readonly message: string
  readonly attempts?: readonly { readonly step: string; readonly candidate: string; readonly outcome: string }[]
}
type Outcome = Record<'count' | 'get' | 'all' | 'version' | 'initialize' | 'buffer', Failure> & { probe: unknown[] }

async function outcome(environment: Record<string, string>): Promise<Outcome> {
  const result = await runFixture('noDriver.mjs', environment)
  expect(result.signal).toBeNull()
  expect(result.stderr).toBe('')
  expect(result.code).toBe(0)
  return JSON.parse(result.stdout) as Outcome
}

const calls = ['count', 'get', 'all', 'version', 'initialize', 'buffer'] as const

describe('without a usable driver every call throws a typed error, and the process survives', () => {
  test.each([
    ['a file that is not there', join(folder, 'missing.so'), /No such file|not found|cannot open/],
    ['a file that is not ELF', notElf, /invalid ELF header|file too short/],
    ['an ELF file that is cut off', cutOff, /file too short|invalid ELF header/],
    ['a folder', folder, /directory|cannot read|folder/],
  ])('%s', async (_, path, words) => {
    const result = await outcome({ SHOAL_CUDA_LIBRARY: path })
    for (const call of calls) {
      expect(result[call]).toMatchObject({ name: 'LibraryNotFoundError', code: 'SHOAL_LIBRARY_NOT_FOUND' })
      expect(result[call].attempts).toHaveLength(1)
      expect(result[call].attempts?.[0]).toMatchObject({ step: 'environment', candidate: path })
      expect(result[call].attempts?.[0]?.outcome).toMatch(words)
      expect(result[call].message).toContain(path)
    }
    expect(result.probe.length).toBeGreaterThan(0)
  })

  test('with a library that lacks the functions', async () => {
    const result = await outcome({ SHOAL_CUDA_LIBRARY: empty })
    for (const call of calls) {
      expect(result[call]).toMatchObject({ name: 'SymbolNotFoundError', code: 'SHOAL_SYMBOL_NOT_FOUND' })
      expect(result[call].message).toContain(empty)
    }
  })

  test('with the software device but without its folder', async () => {
    const result = await outcome({ SHOAL_DEVICE: 'sim', SHOAL_SIM_FOLDER: folder })
    for (const call of calls) expect(result[call].name).toBe('LibraryNotFoundError')
  })

  test('with SHOAL_DEVICE other than gpu or sim', async () => {
    const result = await outcome({ SHOAL_DEVICE: 'simulator' })
    expect(result.count).toMatchObject({ name: 'RangeError' })
    expect(result.count.message).toContain("'simulator'")
  })

  test('a driver without devices returns an empty list', async () => {
    const result = (await outcome({ SHOAL_CUDA_LIBRARY: withoutDevice })) as unknown as Record<string, object>
    expect(result['count']).toEqual({ value: '0' })
    expect(result['all']).toEqual({ value: '' })
    expect(result['version']).toEqual({ value: '12.4' })
    expect(result['get']).toMatchObject({
      name: 'RangeError',
      message: 'Device.get: ordinal must be the ordinal of a device, but this machine has no CUDA device',
    })
    expect(result['initialize']).toMatchObject({ name: 'StatusError', code: 'CUDA_ERROR_NO_DEVICE' })
  })
})
