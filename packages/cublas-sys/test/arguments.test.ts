import * as blas from '@shoal/cublas-sys'
import * as lt from '@shoal/cublas-sys/lt'
import { afterAll, expect, expectTypeOf, test } from 'vitest'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never
const { CUBLAS_OP_N } = blas.cublasOperation_t
const { CUDA_R_32F } = lt.cudaDataType
const one = new Float32Array([1])

test.each([
  ['a number for a handle', () => blas.cublasDestroy(wrong(5)), TypeError, /^cublasDestroy: handle must be a bigint/],
  ['memory that is too small', () => blas.cublasCreate(new Uint8Array(4)), RangeError, /^cublasCreate: handle /],
  [
    'a fraction for a count',
    () => blas.cublasSgemm(null, CUBLAS_OP_N, CUBLAS_OP_N, 0.5, 1, 1, one, 0n, 1, 0n, 1, one, 0n, 1),
    RangeError,
    /^cublasSgemm: m /,
  ],
  [
    'a count beyond 64 bits',
    () => blas.cublasSgemm_64(null, CUBLAS_OP_N, CUBLAS_OP_N, 2n ** 63n, 1, 1, one, 0n, 1, 0n, 1, one, 0n, 1),
    RangeError,
    /^cublasSgemm_64: m /,
  ],
  [
    'a single float for a double scalar',
    () => blas.cublasDscal(null, 1, one, 0n, 1),
    RangeError,
    /^cublasDscal: alpha /,
  ],
  [
    'less than the five parameters of a rotation',
    () => blas.cublasSrotm(null, 1, 0n, 1, 0n, 1, new Float32Array(4)),
    RangeError,
    /^cublasSrotm: param /,
  ],
  [
    'memory for a descriptor',
    () => lt.cublasLtMatrixLayoutDestroy(wrong(new Uint8Array(64))),
    TypeError,
    /^cublasLtMatrixLayoutDestroy: matLayout must be a bigint/,
  ],
  [
    'an algorithm that is too small',
    () =>
      lt.cublasLtMatmul(null, null, one, 0n, null, 0n, null, one, 0n, null, 0n, null, new Uint8Array(8), 0n, 0, null),
    RangeError,
    /^cublasLtMatmul: algo /,
  ],
  [
    'a negative size',
    () => lt.cublasLtMatrixLayoutInit_internal(null, -1, CUDA_R_32F, 1, 1, 1),
    RangeError,
    /^cublasLtMatrixLayoutInit_internal: size /,
  ],
  ['a text with NUL', () => lt.cublasLtLoggerOpenFile('a\0b'), TypeError, /^cublasLtLoggerOpenFile: logFile /],
])('%s is refused by function and parameter, before the library is searched', (_what, call, kind, message) => {
  expect(call).toThrow(kind)
  expect(call).toThrow(message)
})

test('handles and descriptors are distinct types (checked by tsc)', () => {
  expectTypeOf<bigint>().not.toExtend<blas.cublasHandle_t>()
  expectTypeOf<lt.cublasLtHandle_t>().not.toExtend<blas.cublasHandle_t>()
  expectTypeOf<lt.cublasLtMatrixLayout_t>().not.toExtend<lt.cublasLtMatmulDesc_t>()
  expectTypeOf<lt.cudaStream_t>().toExtend<blas.cudaStream_t>()
})

test('statuses, types and structures have the values of the headers', () => {
  expect(blas.cublasStatus_t.CUBLAS_STATUS_NOT_SUPPORTED).toBe(15)
  expect(lt.cublasStatus_t).toEqual(blas.cublasStatus_t)
  expect(lt.cublasComputeType_t.CUBLAS_COMPUTE_32F_FAST_TF32).toBe(77)
  expect(lt.cublasLtEpilogue_t.CUBLASLT_EPILOGUE_RELU_AUX_BIAS).toBe(134)
  expect(lt.cublasLtMatmulAlgo_t.size).toBe(64)
  expect(lt.cublasLtMatmulDescOpaque_t.size).toBe(256)
  expect([blas.cuComplex.alignment, blas.cuDoubleComplex.alignment]).toEqual([8, 16])
})

test('the plain names are the newest ABIs, and their libraries are found from both entries', () => {
  expect(Object.keys(blas).filter((name) => /_v2/.test(name))).toEqual([])
  expect(blas.cublasLt).toBe(lt.cublasLt)
})

afterAll(() => {
  expect([blas.cublas.isLoaded, lt.cublasLt.isLoaded]).toEqual([false, false])
})
