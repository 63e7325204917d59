import * as cuda from '@shoal/cuda-sys/runtime'
import { readCString } from '@shoal/ffi'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { readSpec } from './spec.js'

const spec = readSpec('runtime')

function missing(): string | undefined {
  try {
    cuda.runtime.load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError)
      return 'no libcudart on this machine: set SHOAL_CUDART_LIBRARY or CUDA_HOME'
    throw error
  }
}

const reason = missing()

describe('the real libcudart', () => {
  test('returns its version', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const version = new Int32Array(1)
    expect(cuda.cudaRuntimeGetVersion(version)).toBe(cuda.cudaError.cudaSuccess)
    expect(version[0]).toBeGreaterThanOrEqual(11000)
    expect(cuda.runtime.version).toBe(version[0])
  })

  test('has every function of its version', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const installed = cuda.runtime.version as number
    if (Math.floor(installed / 1000) !== Math.floor(spec.headerVersion / 1000)) {
      return skip(`libcudart is ${cuda.runtime.versionText}, the spec of ${spec.headerVersion}`)
    }
    const unresolved = spec.functions.filter(({ symbol }) => !cuda.runtime.has(symbol))
    const here = unresolved.filter(({ platform }) => platform === undefined || platform === process.platform)
    expect(here.map(({ name }) => name)).toEqual([])
    const variants = spec.functions.filter(({ perThreadSymbol }) => perThreadSymbol !== undefined)
    expect(
      variants.filter(({ perThreadSymbol }) => cuda.runtime.rawSymbol(perThreadSymbol as string) === undefined),
    ).toEqual([])
  })

  test('has the same name for every error code', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const named = Object.entries(cuda.cudaError).map(([name, code]) => [name, readCString(cuda.cudaGetErrorName(code))])
    const wrong = named.filter(([name, told]) => name !== told && told !== 'unrecognized error code')
    expect(wrong).toEqual([])
  })

  test('returns a struct by value', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    expect(cuda.cudaCreateChannelDesc(8, 16, 24, 32, cuda.cudaChannelFormatKind.cudaChannelFormatKindFloat)).toEqual({
      x: 8,
      y: 16,
      z: 24,
      w: 32,
      f: 2,
    })
  })
})
