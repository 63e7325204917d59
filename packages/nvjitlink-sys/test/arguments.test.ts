import * as linker from '@shoal/nvjitlink-sys'
import { afterAll, expect, expectTypeOf, test } from 'vitest'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never
const { NVJITLINK_INPUT_PTX } = linker.nvJitLinkInputType

test.each([
  [
    'a number for a handle',
    () => linker.nvJitLinkComplete(wrong(5)),
    TypeError,
    /^nvJitLinkComplete: handle must be a bigint/,
  ],
  [
    'no data',
    () => linker.nvJitLinkAddData(null, NVJITLINK_INPUT_PTX, wrong('x'), 1, 'a'),
    TypeError,
    /^nvJitLinkAddData: data /,
  ],
  [
    'a text with NUL',
    () => linker.nvJitLinkAddFile(null, NVJITLINK_INPUT_PTX, 'a\0b'),
    TypeError,
    /^nvJitLinkAddFile: fileName /,
  ],
  [
    'a negative count',
    () => linker.nvJitLinkCreate(new BigUint64Array(1), -1, null),
    RangeError,
    /^nvJitLinkCreate: numOptions /,
  ],
  [
    'memory that is too small',
    () => linker.nvJitLinkGetLinkedPtxSize(null, new Uint8Array(4)),
    RangeError,
    /^nvJitLinkGetLinkedPtxSize: size /,
  ],
])('%s is refused by function and parameter, before the library is searched', (_what, call, kind, message) => {
  expect(call).toThrow(kind)
  expect(call).toThrow(message)
})

test('a linker is a distinct handle type (checked by tsc)', () => {
  expectTypeOf<bigint>().not.toExtend<linker.nvJitLinkHandle>()
})

test('statuses and input kinds have the values of the header', () => {
  expect(linker.nvJitLinkResult.NVJITLINK_ERROR_LTO_NOT_ENABLED).toBe(18)
  expect(linker.nvJitLinkInputType.NVJITLINK_INPUT_ANY).toBe(10)
})

afterAll(() => {
  expect(linker.nvjitlink.isLoaded).toBe(false)
})
