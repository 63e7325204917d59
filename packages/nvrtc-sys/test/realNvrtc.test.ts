import { existsSync, readFileSync } from 'node:fs'
import { readCString } from '@shoal/ffi'
import * as nvrtc from '@shoal/nvrtc-sys'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

interface Spec {
  functions: { name: string; since: number }[]
}

const spec = JSON.parse(
  readFileSync(new URL('../../../tooling/bindgen/spec/nvrtc.json', import.meta.url), 'utf8'),
) as Spec

function missing(): string | undefined {
  try {
    nvrtc.nvrtc.load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnvrtc on this machine: set SHOAL_NVRTC_LIBRARY'
    throw error
  }
}

const reason = missing()
const { NVRTC_SUCCESS, NVRTC_ERROR_COMPILATION, NVRTC_ERROR_INVALID_PROGRAM } = nvrtc.nvrtcResult

describe('the real libnvrtc', () => {
  test('returns its version', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [major, minor] = [new Int32Array(1), new Int32Array(1)]
    expect(nvrtc.nvrtcVersion(major, minor)).toBe(NVRTC_SUCCESS)
    expect(nvrtc.nvrtc.version).toBe((major[0] as number) * 1000 + (minor[0] as number) * 10)
    expect(nvrtc.nvrtc.versionText).toBe(`${major[0]}.${minor[0]}`)
  })

  test('has every function of its version and earlier versions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const installed = nvrtc.nvrtc.version as number
    const expected = spec.functions.filter(({ since }) => since <= installed)
    expect(expected.length).toBeGreaterThan(10)
    expect(expected.filter(({ name }) => !nvrtc.nvrtc.has(name)).map(({ name }) => name)).toEqual([])
  })

  test('exports exactly the listed functions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const name = `libnvrtc-${nvrtc.nvrtc.versionText}.symbols.txt`
    const file = new URL(`../../../tooling/bindgen/abi/${name}`, import.meta.url)
    if (!existsSync(file)) return skip(`no ${name}`)
    const listed = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    expect(listed.filter((symbol) => nvrtc.nvrtc.rawSymbol(symbol) === undefined)).toEqual([])
    expect(listed.filter((symbol) => !symbol.startsWith('_'))).toEqual(spec.functions.map((entry) => entry.name))
  })

  test('has the same name for every status', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    for (const [name, value] of Object.entries(nvrtc.nvrtcResult)) {
      const told = readCString(nvrtc.nvrtcGetErrorString(value) as bigint)
      // An older library does not know the newest errors.
      if (told !== 'NVRTC_ERROR unknown') expect(told).toBe(name)
    }
  })

  test('compiles a source, and reports the error of another', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const handle = new BigUint64Array(1)
    const size = new BigUint64Array(1)
    expect(nvrtc.nvrtcCreateProgram(handle, 'extern "C" __global__ void k() {}', 'k.cu', 0, null, null)).toBe(
      NVRTC_SUCCESS,
    )
    const program = nvrtc.nvrtcProgram(handle[0] as bigint)
    expect(nvrtc.nvrtcCompileProgram(program, 0, null)).toBe(NVRTC_SUCCESS)
    expect(nvrtc.nvrtcGetPTXSize(program, size)).toBe(NVRTC_SUCCESS)
    const ptx = Buffer.alloc(Number(size[0]))
    expect(nvrtc.nvrtcGetPTX(program, ptx)).toBe(NVRTC_SUCCESS)
    expect(ptx.toString('latin1')).toContain('.visible .entry k()')
    expect(nvrtc.nvrtcDestroyProgram(handle)).toBe(NVRTC_SUCCESS)
    expect(handle[0]).toBe(0n)

    nvrtc.nvrtcCreateProgram(handle, 'nonsense', null as never, 0, null, null)
    expect(nvrtc.nvrtcCompileProgram(nvrtc.nvrtcProgram(handle[0] as bigint), 0, null)).toBe(NVRTC_ERROR_COMPILATION)
    nvrtc.nvrtcDestroyProgram(handle)
  })

  test('refuses a null program with a status instead of a crash', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    expect(nvrtc.nvrtcCompileProgram(null, 0, null)).toBe(NVRTC_ERROR_INVALID_PROGRAM)
    expect(nvrtc.nvrtcGetPTXSize(null, new BigUint64Array(1))).toBe(NVRTC_ERROR_INVALID_PROGRAM)
  })

  test('accepts a heap size for precompiled headers', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    if (!nvrtc.nvrtc.has('nvrtcGetPCHHeapSize')) return skip(`NVRTC ${nvrtc.nvrtc.versionText} has no such heap`)
    const size = new BigUint64Array(1)
    expect(nvrtc.nvrtcSetPCHHeapSize(1 << 20)).toBe(NVRTC_SUCCESS)
    expect(nvrtc.nvrtcGetPCHHeapSize(size)).toBe(NVRTC_SUCCESS)
    expect(size[0]).toBeGreaterThanOrEqual(1n << 20n)
  })
})
