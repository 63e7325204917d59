import * as nccl from '@shoal/nccl-sys'
import { afterAll, expect, expectTypeOf, test } from 'vitest'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never
const { ncclFloat32 } = nccl.ncclDataType_t
const { ncclSum } = nccl.ncclRedOp_t

test.each([
  [
    'a number for a communicator',
    () => nccl.ncclCommDestroy(wrong(5)),
    TypeError,
    /^ncclCommDestroy: comm must be a bigint/,
  ],
  [
    'undefined for a buffer',
    () => nccl.ncclAllReduce(wrong(undefined), 1n, 1, ncclFloat32, ncclSum, null, null),
    TypeError,
    /^ncclAllReduce: sendbuff /,
  ],
  [
    'a negative count',
    () => nccl.ncclAllReduce(1n, 1n, -1, ncclFloat32, ncclSum, null, null),
    RangeError,
    /^ncclAllReduce: count /,
  ],
  [
    'a fraction for a rank',
    () => nccl.ncclCommInitRank(null, 1, new Uint8Array(128), 0.5),
    RangeError,
    /^ncclCommInitRank: rank /,
  ],
  [
    'a unique id that is too short',
    () => nccl.ncclCommInitRank(null, 1, new Uint8Array(127), 0),
    RangeError,
    /^ncclCommInitRank: commId /,
  ],
  [
    'a stream above 64 bits',
    () => nccl.ncclBroadcast(1n, 1n, 1, ncclFloat32, 0, null, nccl.cudaStream_t(2n ** 64n)),
    RangeError,
    /^ncclBroadcast: stream /,
  ],
])('%s is refused by function and parameter, before the library is searched', (_what, call, kind, message) => {
  expect(call).toThrow(kind)
  expect(call).toThrow(message)
})

test('a driver stream is accepted as a stream; operators made at run time are operators (checked by tsc)', () => {
  expectTypeOf<nccl.ncclComm_t>().not.toExtend<nccl.cudaStream_t>()
  expectTypeOf<number>().toExtend<nccl.ncclRedOp_t>()
})

test('enumerators have the values of the C header', () => {
  expect(nccl.ncclScalarResidence_t).toEqual({ ncclScalarDevice: 0, ncclScalarHostImmediate: 1 })
  expect(nccl.ncclResult_t.ncclTimeout).toBe(8)
  expect(nccl.ncclUniqueId.size).toBe(nccl.NCCL_UNIQUE_ID_BYTES)
  expect(nccl.NCCL_CONFIG_UNDEF_INT).toBe(-(2 ** 31))
  expect(nccl.NCCL_API_MAGIC).toBe(0xcafebeef)
})

test('version numbers are formatted as text', () => {
  expect(nccl.formatNcclVersion(23007)).toBe('2.30.7')
  expect(nccl.formatNcclVersion(2708)).toBe('2.7.8')
})

afterAll(() => {
  expect(nccl.nccl.isLoaded).toBe(false)
})
