import { existsSync, readFileSync } from 'node:fs'
import * as blas from '@shoal/cublas-sys'
import * as lt from '@shoal/cublas-sys/lt'
import { NativeMemory, readCString } from '@shoal/ffi'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

interface Spec {
  functions: { name: string; symbol: string; since: number }[]
}

const libraries = { cublas: blas.cublas, cublasLt: lt.cublasLt } as const

function missing(id: keyof typeof libraries): string | undefined {
  try {
    libraries[id].load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError)
      return `no lib${id} on this machine: set SHOAL_${id.toUpperCase()}_LIBRARY`
    throw error
  }
}

const { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_INVALID_VALUE } = blas.cublasStatus_t

describe.each(['cublas', 'cublasLt'] as const)('the real lib%s', (id) => {
  const library = libraries[id]
  const reason = missing(id)
  const spec = JSON.parse(
    readFileSync(new URL(`../../../tooling/bindgen/spec/${id}.json`, import.meta.url), 'utf8'),
  ) as Spec

  test('returns its version, part by part', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const property = id === 'cublas' ? blas.cublasGetProperty : lt.cublasLtGetProperty
    const cell = new Int32Array(1)
    const parts = Object.values(blas.libraryPropertyType).map((part) => {
      expect(property(part, cell)).toBe(CUBLAS_STATUS_SUCCESS)
      return cell[0]
    })
    expect(library.versionText).toBe(parts.join('.'))
    expect(property(9 as never, cell)).toBe(CUBLAS_STATUS_INVALID_VALUE)
  })

  test('has every function of its version and earlier versions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const expected = spec.functions.filter(({ since }) => since <= (library.version as number))
    expect(expected.length).toBeGreaterThan(40)
    expect(expected.filter(({ symbol }) => !library.has(symbol)).map(({ name }) => name)).toEqual([])
  })

  test('exports exactly the listed functions', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const name = `lib${id}-${library.versionText}.symbols.txt`
    const file = new URL(`../../../tooling/bindgen/abi/${name}`, import.meta.url)
    if (!existsSync(file)) return skip(`no ${name}`)
    const listed = readFileSync(file, 'utf8').split('\n').filter(Boolean)
    expect(listed.filter((symbol) => library.rawSymbol(symbol) === undefined)).toEqual([])
    expect(spec.functions.filter(({ symbol }) => !listed.includes(symbol))).toEqual([])
  })

  test('has the same name for every status, and a text', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const [nameOf, textOf] =
      id === 'cublas'
        ? [blas.cublasGetStatusName, blas.cublasGetStatusString]
        : [lt.cublasLtGetStatusName, lt.cublasLtGetStatusString]
    for (const [name, status] of Object.entries(blas.cublasStatus_t)) {
      expect(readCString(nameOf(status))).toBe(name)
      expect(readCString(textOf(status))?.length).toBeGreaterThan(3)
    }
  })
})

describe('without a handle', () => {
  test('cuBLAS refuses calls by status, and returns the versions', ({ skip }) => {
    const reason = missing('cublas')
    if (reason !== undefined) return skip(reason)
    const cell = new Int32Array(1)
    expect(blas.cublasGetVersion(null, cell)).toBe(CUBLAS_STATUS_SUCCESS)
    expect(cell[0]).toBe(blas.cublas.version)
    expect(blas.cublasGetCudartVersion()).toBeGreaterThanOrEqual(12_000n)
    const { CUBLAS_OP_N } = blas.cublasOperation_t
    const scalar = new Float32Array([1])
    for (const gemm of [blas.cublasSgemm, blas.cublasSgemm_64])
      expect(gemm(null, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, scalar, null, 1, null, 1, scalar, null, 1)).toBe(
        CUBLAS_STATUS_NOT_INITIALIZED,
      )
  })

  test('cuBLASLt makes descriptors, in its memory and in that of the program', ({ skip }) => {
    const reason = missing('cublasLt')
    if (reason !== undefined) return skip(reason)
    const { CUBLASLT_MATMUL_DESC_TRANSA: transpose } = lt.cublasLtMatmulDescAttributes_t
    const { CUBLAS_COMPUTE_32F } = lt.cublasComputeType_t
    const { CUDA_R_32F } = lt.cudaDataType
    const out = new BigUint64Array(1)
    const written = new BigUint64Array(1)
    const value = new Int32Array([lt.cublasOperation_t.CUBLAS_OP_T])
    expect(lt.cublasLtMatmulDescCreate(out, CUBLAS_COMPUTE_32F, CUDA_R_32F)).toBe(CUBLAS_STATUS_SUCCESS)
    const product = lt.cublasLtMatmulDesc_t(out[0] as bigint)
    expect(lt.cublasLtMatmulDescSetAttribute(product, transpose, value, 4)).toBe(CUBLAS_STATUS_SUCCESS)
    value.fill(9)
    expect(lt.cublasLtMatmulDescGetAttribute(product, transpose, value, 4, written)).toBe(CUBLAS_STATUS_SUCCESS)
    expect([value[0], written[0]]).toEqual([lt.cublasOperation_t.CUBLAS_OP_T, 4n])
    expect(lt.cublasLtMatmulDescDestroy(product)).toBe(CUBLAS_STATUS_SUCCESS)

    const { size } = lt.cublasLtMatrixLayoutOpaque_t
    using memory = NativeMemory.allocate(size)
    const layout = lt.cublasLtMatrixLayout_t(memory.address)
    expect(lt.cublasLtMatrixLayoutInit_internal(layout, size, CUDA_R_32F, 3, 5, 3)).toBe(CUBLAS_STATUS_SUCCESS)
    const { CUBLASLT_MATRIX_LAYOUT_COLS: columns } = lt.cublasLtMatrixLayoutAttribute_t
    const count = new BigUint64Array(1)
    expect(lt.cublasLtMatrixLayoutGetAttribute(layout, columns, count, 8, written)).toBe(CUBLAS_STATUS_SUCCESS)
    expect(count[0]).toBe(5n)
    // It checks the size, which the program says.
    const { CUBLAS_STATUS_ALLOC_FAILED } = lt.cublasStatus_t
    expect(lt.cublasLtMatrixLayoutInit_internal(layout, size / 2, CUDA_R_32F, 3, 5, 3)).toBe(CUBLAS_STATUS_ALLOC_FAILED)
  })
})
