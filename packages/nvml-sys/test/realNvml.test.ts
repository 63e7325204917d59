import { existsSync, readFileSync } from 'node:fs'
import { readCString } from '@shoal/ffi'
import * as nvml from '@shoal/nvml-sys'
import { LibraryNotFoundError } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

interface Spec {
  functions: { name: string; symbol: string; since: number }[]
  unbound: { symbol: string }[]
}

const spec = JSON.parse(
  readFileSync(new URL('../../../tooling/bindgen/spec/nvml.json', import.meta.url), 'utf8'),
) as Spec

function missing(): string | undefined {
  try {
    nvml.nvml.load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError)
      return 'no libnvidia-ml here: install a driver, or set SHOAL_NVML_LIBRARY'
    throw error
  }
}

const reason = missing()
const { NVML_SUCCESS, NVML_ERROR_UNINITIALIZED, NVML_ERROR_DRIVER_NOT_LOADED } = nvml.nvmlReturn_t

/** The text that a function writes. */
function textOf(call: (text: Uint8Array, length: number) => number): string {
  const text = new Uint8Array(96)
  expect(call(text, text.length)).toBe(NVML_SUCCESS)
  return Buffer.from(text.subarray(0, text.indexOf(0))).toString()
}

describe('the real NVML', () => {
  let status = -1
  beforeAll(() => {
    if (reason === undefined) status = nvml.nvmlInit()
  })
  afterAll(() => {
    if (status === NVML_SUCCESS) nvml.nvmlShutdown()
  })

  /** Why a question about a GPU cannot be asked, or undefined. */
  const noDriver = (): string | undefined =>
    reason ?? (status === NVML_SUCCESS ? undefined : `NVML cannot start here: status ${status}`)

  test('returns texts of statuses and its version without a driver', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    expect([NVML_SUCCESS, NVML_ERROR_DRIVER_NOT_LOADED]).toContain(status)
    expect(readCString(nvml.nvmlErrorString(NVML_ERROR_UNINITIALIZED))).toBe('Uninitialized')
    expect(textOf(nvml.nvmlSystemGetNVMLVersion)).toMatch(/^\d+\.\d+\.\d+/)
  })

  test('has every function of its version and earlier versions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    // Without a driver NVML does not report the release of CUDA. The oldest functions must be there.
    const installed = nvml.nvml.version ?? 11_000
    const expected = spec.functions.filter(({ since }) => since <= installed)
    expect(expected.length).toBeGreaterThan(200)
    expect(expected.filter(({ symbol }) => !nvml.nvml.has(symbol)).map(({ name }) => name)).toEqual([])
  })

  test('exports exactly the listed functions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [, driver] = /^\d+\.(\d+\.\d+)/.exec(textOf(nvml.nvmlSystemGetNVMLVersion)) ?? []
    const file = new URL(`../../../tooling/bindgen/abi/libnvidia-ml-${driver}.symbols.txt`, import.meta.url)
    if (!existsSync(file)) return skip(`no list of the exports of driver ${driver}`)
    const listed = new Set(
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
    )
    expect([...listed].filter((symbol) => nvml.nvml.rawSymbol(symbol) === undefined)).toEqual([])
    const known = [...spec.functions, ...spec.unbound].map(({ symbol }) => symbol)
    expect(known.filter((symbol) => !listed.has(symbol) && nvml.nvml.rawSymbol(symbol) !== undefined)).toEqual([])
  })

  test('describes each GPU', ({ skip }) => {
    const cannot = noDriver()
    if (cannot !== undefined) return skip(cannot)
    expect(textOf(nvml.nvmlSystemGetDriverVersion)).toMatch(/^\d+\.\d+/)
    const count = new Uint32Array(1)
    expect(nvml.nvmlDeviceGetCount(count)).toBe(NVML_SUCCESS)
    for (let index = 0; index < (count[0] as number); index += 1) {
      const handle = new BigUint64Array(1)
      expect(nvml.nvmlDeviceGetHandleByIndex(index, handle)).toBe(NVML_SUCCESS)
      const device = nvml.nvmlDevice_t(handle[0] as bigint)
      expect(textOf((text, length) => nvml.nvmlDeviceGetUUID(device, text, length))).toMatch(/^GPU-[\da-f-]{36}$/)
      const memory = nvml.nvmlMemory_v2_t.allocate({ version: nvml.nvmlMemory_v2 })
      expect(nvml.nvmlDeviceGetMemoryInfo_v2(device, memory)).toBe(NVML_SUCCESS)
      const { total, free, used, reserved } = nvml.nvmlMemory_v2_t.read(memory)
      expect(total).toBe(free + used + reserved)
    }
  })
})
