import * as nvrtc from '@shoal/nvrtc-sys'
import { afterAll, expect, expectTypeOf, test } from 'vitest'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never

test.each([
  [
    'a number for a program',
    () => nvrtc.nvrtcCompileProgram(wrong(5), 0, null),
    TypeError,
    /^nvrtcCompileProgram: prog must be a bigint/,
  ],
  [
    'no source',
    () => nvrtc.nvrtcCreateProgram(new BigUint64Array(1), wrong(1), 'a', 0, null, null),
    TypeError,
    /^nvrtcCreateProgram: src /,
  ],
  [
    'a text with NUL',
    () => nvrtc.nvrtcCreateProgram(new BigUint64Array(1), 'a\0b', 'a', 0, null, null),
    TypeError,
    /^nvrtcCreateProgram: src /,
  ],
  [
    'a fraction for a count',
    () => nvrtc.nvrtcCompileProgram(null, 0.5, null),
    RangeError,
    /^nvrtcCompileProgram: numOptions /,
  ],
  [
    'memory that is too small',
    () => nvrtc.nvrtcGetPTXSize(null, new Uint8Array(4)),
    RangeError,
    /^nvrtcGetPTXSize: ptxSizeRet /,
  ],
  ['a size below zero', () => nvrtc.nvrtcSetPCHHeapSize(-1), RangeError, /^nvrtcSetPCHHeapSize: size /],
])('%s is refused by function and parameter, before the library is searched', (_what, call, kind, message) => {
  expect(call).toThrow(kind)
  expect(call).toThrow(message)
})

test('a program is a distinct handle type (checked by tsc)', () => {
  expectTypeOf<bigint>().not.toExtend<nvrtc.nvrtcProgram>()
})

test('NVRTC statuses have the values of the header', () => {
  expect(nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION).toBe(6)
  expect(nvrtc.nvrtcResult.NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED).toBe(17)
})

afterAll(() => {
  expect(nvrtc.nvrtc.isLoaded).toBe(false)
})
