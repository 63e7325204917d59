import { existsSync, readFileSync } from 'node:fs'
import { NativeMemory } from '@shoal/ffi'
import * as linker from '@shoal/nvjitlink-sys'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

interface Spec {
  functions: { name: string; since: number }[]
}

const spec = JSON.parse(
  readFileSync(new URL('../../../tooling/bindgen/spec/nvjitlink.json', import.meta.url), 'utf8'),
) as Spec

function missing(): string | undefined {
  try {
    linker.nvjitlink.load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnvJitLink on this machine: set SHOAL_NVJITLINK_LIBRARY'
    throw error
  }
}

const reason = missing()
const { NVJITLINK_SUCCESS, NVJITLINK_ERROR_MISSING_ARCH } = linker.nvJitLinkResult

/** Returns a `const char **` of one option. */
function oneOption(text: string): NativeMemory {
  const memory = NativeMemory.allocate(8 + text.length + 1)
  memory.u64[0] = memory.address + 8n
  memory.bytes.set(Buffer.from(text), 8)
  return memory
}

describe('the real libnvJitLink', () => {
  test('returns its version', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    if (!linker.nvjitlink.has('nvJitLinkVersion')) return skip('an nvJitLink before 12.3 does not tell')
    const [major, minor] = [new Uint32Array(1), new Uint32Array(1)]
    expect(linker.nvJitLinkVersion(major, minor)).toBe(NVJITLINK_SUCCESS)
    expect(linker.nvjitlink.version).toBe((major[0] as number) * 1000 + (minor[0] as number) * 10)
  })

  test('has every function of its version and earlier versions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const installed = linker.nvjitlink.version ?? 12_000
    const expected = spec.functions.filter(({ since }) => since <= installed)
    expect(expected.length).toBeGreaterThan(10)
    expect(expected.filter(({ name }) => !linker.nvjitlink.has(name)).map(({ name }) => name)).toEqual([])
  })

  test('exports exactly the listed functions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const name = `libnvJitLink-${linker.nvjitlink.versionText}.symbols.txt`
    const file = new URL(`../../../tooling/bindgen/abi/${name}`, import.meta.url)
    if (!existsSync(file)) return skip(`no ${name}`)
    const listed = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    expect(listed.filter((symbol) => linker.nvjitlink.rawSymbol(symbol) === undefined)).toEqual([])
    expect(listed.filter((symbol) => !symbol.startsWith('_'))).toEqual(spec.functions.map((entry) => entry.name))
  })

  test('links PTX into a cubin', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const handle = new BigUint64Array(1)
    const size = new BigUint64Array(1)
    expect(linker.nvJitLinkCreate(handle, 1, oneOption('-arch=sm_90'))).toBe(NVJITLINK_SUCCESS)
    const link = linker.nvJitLinkHandle(handle[0] as bigint)
    const ptx = Buffer.from('.version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\0')
    const { NVJITLINK_INPUT_PTX } = linker.nvJitLinkInputType
    expect(linker.nvJitLinkAddData(link, NVJITLINK_INPUT_PTX, ptx, ptx.length, 'k.ptx')).toBe(NVJITLINK_SUCCESS)
    expect(linker.nvJitLinkComplete(link)).toBe(NVJITLINK_SUCCESS)
    expect(linker.nvJitLinkGetLinkedCubinSize(link, size)).toBe(NVJITLINK_SUCCESS)
    const cubin = Buffer.alloc(Number(size[0]))
    expect(linker.nvJitLinkGetLinkedCubin(link, cubin)).toBe(NVJITLINK_SUCCESS)
    expect(cubin.toString('latin1', 0, 4)).toBe('\x7fELF')
    expect(linker.nvJitLinkDestroy(handle)).toBe(NVJITLINK_SUCCESS)
  })

  test('requires an architecture, and refuses null', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const handle = new BigUint64Array(1)
    expect(linker.nvJitLinkCreate(handle, 1, oneOption('-verbose'))).toBe(NVJITLINK_ERROR_MISSING_ARCH)
    expect(linker.nvJitLinkCreate(handle, 0, null)).not.toBe(NVJITLINK_SUCCESS)
    expect(linker.nvJitLinkComplete(null)).not.toBe(NVJITLINK_SUCCESS)
  })
})
