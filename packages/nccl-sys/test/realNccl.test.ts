import { readFileSync } from 'node:fs'
import { readCString } from '@shoal/ffi'
import * as nccl from '@shoal/nccl-sys'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

interface Spec {
  functions: { name: string; since: number }[]
}

const spec = JSON.parse(
  readFileSync(new URL('../../../tooling/bindgen/spec/nccl.json', import.meta.url), 'utf8'),
) as Spec

function missing(): string | undefined {
  try {
    nccl.nccl.load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnccl on this machine: set SHOAL_NCCL_LIBRARY'
    throw error
  }
}

const reason = missing()

describe('the real libnccl', () => {
  test('tells its version', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const version = new Int32Array(1)
    expect(nccl.ncclGetVersion(version)).toBe(nccl.ncclResult_t.ncclSuccess)
    expect(version[0]).toBeGreaterThanOrEqual(21000)
    expect(nccl.nccl.version).toBe(version[0])
  })

  test('has every function that came with its version or before', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const installed = nccl.nccl.version as number
    const expected = spec.functions.filter(({ since }) => since <= installed)
    expect(expected.length).toBeGreaterThan(30)
    expect(expected.filter(({ name }) => !nccl.nccl.has(name)).map(({ name }) => name)).toEqual([])
  })

  test('says something else for each error', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const { ncclNumResults: _, ...codes } = nccl.ncclResult_t
    const texts = Object.values(codes).map((code) => readCString(nccl.ncclGetErrorString(code)) ?? '')
    for (const text of texts) expect(text.length).toBeGreaterThan(3)
    expect(new Set(texts).size).toBeGreaterThanOrEqual(texts.length - 1)
    expect(readCString(nccl.ncclGetErrorString(nccl.ncclResult_t.ncclInvalidUsage))).toContain('usage')
  })

  test('gives unique ids that differ', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [one, other] = [new Uint8Array(128), new Uint8Array(128)]
    expect(nccl.ncclGetUniqueId(one)).toBe(nccl.ncclResult_t.ncclSuccess)
    expect(nccl.ncclGetUniqueId(other)).toBe(nccl.ncclResult_t.ncclSuccess)
    expect(one).not.toEqual(other)
  })

  test('refuses a null communicator by status, not by crash', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const count = new Int32Array(1)
    expect(nccl.ncclCommCount(null, count)).toBe(nccl.ncclResult_t.ncclInvalidArgument)
    expect(readCString(nccl.ncclGetLastError(null))).toMatch(/\w/)
  })
})
