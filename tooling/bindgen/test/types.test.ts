import { describe, expect, test } from 'vitest'
import { parseType } from '../src/parse/ctypes.js'
import { pairVersions } from '../src/parse/driver.js'
import { readGroups } from '../src/parse/groups.js'

describe('parsing of C type names', () => {
  test('nests pointers from the right', () => {
    expect(parseType('const CUgraphNode **')).toEqual({
      kind: 'pointer',
      const: false,
      to: { kind: 'pointer', const: false, to: { kind: 'name', name: 'CUgraphNode', const: true } },
    })
  })

  test('distinguishes a const pointer from a pointer to const', () => {
    expect(parseType('char *const')).toEqual({
      kind: 'pointer',
      const: true,
      to: { kind: 'name', name: 'char', const: false },
    })
  })

  test('nests arrays from the left', () => {
    expect(parseType('unsigned int [3][2]')).toEqual({
      kind: 'array',
      count: 3,
      const: false,
      of: { kind: 'array', count: 2, const: false, of: { kind: 'name', name: 'unsigned int', const: false } },
    })
  })

  test('distinguishes function pointers and functions from pointers', () => {
    expect(parseType('void (*)(CUstream, CUresult, void *)').kind).toBe('function')
    expect(parseType('void (void *)').kind).toBe('function')
    expect(parseType('void *').kind).toBe('pointer')
  })

  test('accepts tags', () => {
    expect(parseType('struct CUuuid_st')).toEqual({ kind: 'tag', tag: 'struct', name: 'CUuuid_st', const: false })
  })
})

describe('versions of driver symbols', () => {
  test('pair symbols with typedefs in order, separately per variant', () => {
    const versions = pairVersions(
      ['cuMemcpyHtoD', 'cuMemcpyHtoD_v2', 'cuMemcpyHtoD_v2_ptds'],
      ['PFN_cuMemcpyHtoD_v3020', 'PFN_cuMemcpyHtoD_v2000', 'PFN_cuMemcpyHtoD_v7000_ptds', 'unrelated'],
    )
    expect(Object.fromEntries(versions)).toEqual({
      cuMemcpyHtoD: 2000,
      cuMemcpyHtoD_v2: 3020,
      cuMemcpyHtoD_v2_ptds: 7000,
    })
  })

  test('throw for a symbol without a version', () => {
    expect(() => pairVersions(['cuX', 'cuX_v2'], ['PFN_cuX_v2000'])).toThrow(/cuX: 2 symbols .* 1 versions/)
  })
})

test('documentation groups can nest and end', () => {
  const groups = readGroups(`
    /** \\defgroup CUDA_A A
     * @{ */
    CUresult CUDAAPI cuOne(int a);
    /** \\defgroup CUDA_B B
     * @{ */
    CUresult CUDAAPI
    cuTwo(int a);
    /** @} */
    CUresult CUDAAPI cuThree(int a);
    /** @} */
    CUresult CUDAAPI cuFour(int a);
  `)
  expect(Object.fromEntries(groups)).toEqual({ cuOne: 'CUDA_A', cuTwo: 'CUDA_B', cuThree: 'CUDA_A' })
})
