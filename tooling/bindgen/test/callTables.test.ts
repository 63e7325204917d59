import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { driverLibrary } from '../../../packages/driver/src/core/calls/driverLibrary.js'
import { adaptedNames } from '../../../packages/runtime/src/calls/adaptedCalls.js'
import { runtimeLibrary } from '../../../packages/runtime/src/calls/runtimeLibrary.js'
import { emitCallTables, pairCalls, sharedPairs, tableFiles } from '../src/emit/callTables.js'
import { renamedPairs, unlikePairs } from '../src/facts/callPairs.js'
import type { FunctionSpec, LibrarySpecFile } from '../src/spec/types.js'
import { readExported, readSpec, root } from './environment.js'

const driver = readSpec('driver')
const runtime = readSpec('runtime')
const pairs = pairCalls(driver, runtime)
const packages = join(root, 'packages')
const shared = sharedPairs(pairs, packages)

function specOf(library: LibrarySpecFile, name: string): FunctionSpec {
  return library.functions.find((entry) => entry.name === name) as FunctionSpec
}

/** The spec, with one function changed. */
function withChange(library: LibrarySpecFile, name: string, change: Partial<FunctionSpec>): LibrarySpecFile {
  const functions = library.functions.map((entry) => (entry.name === name ? { ...entry, ...change } : entry))
  return { ...library, functions }
}

test.each(Object.values(tableFiles))('packages/%s equals the output of the committed specs', (path) => {
  expect(readFileSync(join(root, 'packages', path), 'utf8')).toBe(emitCallTables(driver, runtime, packages).get(path))
})

describe('a pair of driver and runtime functions', () => {
  test('has two existing functions, each in one pair only', () => {
    expect(pairs.length).toBeGreaterThan(150)
    for (const side of ['key', 'driver', 'runtime'] as const) {
      expect(new Set(pairs.map((pair) => pair[side])).size).toBe(pairs.length)
    }
    for (const pair of pairs) {
      expect(specOf(driver, pair.driver)?.name).toBe(pair.driver)
      expect(specOf(runtime, pair.runtime)?.name).toBe(pair.runtime)
    }
  })

  // The slot format of each kind of value, written independently of the emitter.
  const slots: Readonly<Record<string, string>> = {
    handle: '64 bits',
    deviceptr: '64 bits',
    callback: '64 bits',
    pointer: '64 bits',
    enum: 'a number',
    integer: 'a number',
  }

  test.each(pairs)('$key: $driver and $runtime are lowered equally', (pair) => {
    const [one, other] = [specOf(driver, pair.driver), specOf(runtime, pair.runtime)]
    const lowered = ({ parameters }: FunctionSpec): string[] =>
      parameters.map(({ lowered: { kind } }) => slots[kind] ?? kind)
    expect(lowered(one)).toEqual(lowered(other))
    expect([one.result.kind, other.result.kind]).toEqual(['enum', 'enum'])
    expect([one.supersededBy, other.supersededBy]).toEqual([undefined, undefined])
  })

  test.each(Object.entries(renamedPairs))('%s and %s is listed in facts/callPairs.ts', (runtimeName, driverName) => {
    expect(pairs).toContainEqual(expect.objectContaining({ runtime: runtimeName, driver: driverName }))
  })

  test.each(Object.keys(unlikePairs))('excludes %s, which behaves differently', (name) => {
    expect(specOf(runtime, name)?.name).toBe(name)
    expect(pairs.map((pair) => pair.runtime)).not.toContain(name)
  })
})

describe('a wrong pair in facts/callPairs.ts', () => {
  const message = 'cudaFree and cuMemFree are named as a pair and are none'

  test('is refused if the parameters differ', () => {
    const { parameters } = specOf(runtime, 'cudaFree')
    const twice = withChange(runtime, 'cudaFree', { parameters: [...parameters, ...parameters] })
    expect(() => pairCalls(driver, twice)).toThrow(message)
    const number = specOf(runtime, 'cudaDeviceCanAccessPeer').parameters[1]
    expect(number?.lowered.kind).toBe('integer')
    const unlike = withChange(runtime, 'cudaFree', { parameters: [number as FunctionSpec['parameters'][number]] })
    expect(() => pairCalls(driver, unlike)).toThrow(message)
  })

  test('is refused if the driver lacks the function or has an old version', () => {
    const functions = driver.functions.filter(({ name }) => name !== 'cuMemFree')
    expect(() => pairCalls({ ...driver, functions }, runtime)).toThrow(message)
    expect(() => pairCalls(withChange(driver, 'cuMemFree', { supersededBy: 'cuMemFree_v9' }), runtime)).toThrow(message)
  })

  test('is omitted even if the names suggest it', () => {
    expect(pairs.map(({ key }) => key)).toContain('streamQuery')
    const other = withChange(runtime, 'cudaStreamQuery', { parameters: [] })
    expect(pairCalls(driver, other).map(({ key }) => key)).not.toContain('streamQuery')
  })
})

test('the call tables hold exactly the pairs used by sources of safe packages', () => {
  const keys = shared.map(({ key }) => key)
  expect(keys).toEqual(expect.arrayContaining(['ctxSynchronize', 'streamQuery', 'memAllocAsync']))
  expect(keys).not.toContain('graphAddEmptyNode')
  expect(sharedPairs(pairs, join(root, 'tooling'))).toEqual([])
})

describe('nameOf', () => {
  describe.each([
    ['driver', driverLibrary, driver],
    ['runtime', runtimeLibrary, runtime],
  ] as const)('of the %s', (name, library, spec) => {
    const keys = Object.keys(library.calls) as (keyof typeof library.calls)[]
    const exported = readExported(name)

    test('has all keys of the table and of the hand-adapted functions', () => {
      const adapted = keys.filter((key) => !shared.some((pair) => pair.key === key))
      expect(keys).toHaveLength(shared.length + adapted.length)
      expect(adapted).toHaveLength(8)
      expect(Object.keys(adaptedNames)).toEqual(expect.arrayContaining(adapted))
    })

    test.each(shared)(`returns the entry of the ${name} table: $key`, (pair) => {
      expect(library.nameOf(pair.key as (typeof keys)[number])).toBe(pair[name])
    })

    const named = [...keys, ...(Object.keys(library.unchecked) as (keyof typeof library.unchecked)[])]

    test.each([...new Set(named.map((key) => library.nameOf(key)))])('%s is exported by the real library', (api) => {
      const found = specOf(spec, api)
      expect(found?.name).toBe(api)
      // The function is newer than the listed library, or belongs to another library of that platform.
      if (found.since > spec.exports.version || found.reason !== undefined) return
      expect([...exported]).toContain(found.symbol)
    })
  })
})
