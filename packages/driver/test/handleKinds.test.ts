import {
  DescriptorHandle,
  type FabricHandle,
  type HandleContent,
  handleKindBits,
  handleKindCode,
  handleKindsOf,
  type MulticastObject,
  type PhysicalMemory,
  platformHandleKind,
  requireHandle,
  type ShareableHandle,
  type ShareableHandleOf,
  type WindowsHandle,
} from '@shoal/driver/shared'
import { expect, expectTypeOf, test } from 'vitest'
import { memoryFacts, openNull } from './support/handleFacts.js'

test("handle kinds have the driver's codes, and combine as bits", () => {
  const kinds = ['posix-fd', 'win32', 'win32-kmt', 'fabric'] as const
  expect(kinds.map((kind) => handleKindCode(kind, 'f'))).toEqual([1, 2, 4, 8])
  expect(handleKindBits(['fabric', 'posix-fd'], 'f')).toBe(9)
  expect(handleKindBits('win32', 'f')).toBe(2)
  expect(handleKindBits([], 'f')).toBe(0)
  expect(handleKindsOf(9)).toEqual(['posix-fd', 'fabric'])
  expect(platformHandleKind()).toBe(process.platform === 'win32' ? 'win32' : 'posix-fd')
  const allowed = "'posix-fd', 'win32', 'win32-kmt' or 'fabric'"
  for (const [bad, text] of [
    ['fd', "'fd'"],
    ['toString', "'toString'"],
    [1, '1'],
    [undefined, 'undefined'],
  ] as const) {
    const message = (name: string): string => `f: ${name} must be ${allowed}, not ${text}`
    expect(() => handleKindCode(bad as never, 'f')).toThrow(new TypeError(message('kind')))
    expect(() => handleKindBits([bad as 'fabric'], 'f')).toThrow(new TypeError(message('handleTypes')))
    expect(() => handleKindBits(bad as 'fabric', 'f')).toThrow(new TypeError(message('handleTypes')))
  }
})

test('a handle with one content is refused where another content is required', () => {
  using pool = new DescriptorHandle(openNull(), { content: 'pool', byteLength: 0 })
  expect(() => requireHandle(pool, 'f', 'memory')).toThrow(
    new TypeError('f: handle must be one of memory, not of a pool'),
  )
  expect(() => requireHandle(pool, 'f', 'multicast')).toThrow(
    'f: handle must be one of a multicast object, not of a pool',
  )
  requireHandle(pool, 'f', 'pool')
  for (const bad of [undefined, 5, { ...memoryFacts, type: 'posix-fd' }, pool.toJSON()]) {
    expect(() => requireHandle(bad as never, 'f', 'memory')).toThrow(TypeError)
  }
})

test('handles with different contents are different types (checked by tsc)', () => {
  expectTypeOf<DescriptorHandle<'pool'>>().not.toExtend<DescriptorHandle<'memory'>>()
  expectTypeOf<DescriptorHandle<'memory'>>().not.toExtend<FabricHandle<'memory'>>()
  expectTypeOf<FabricHandle<'memory'>>().not.toExtend<DescriptorHandle<'memory'>>()
  expectTypeOf<WindowsHandle<'memory', 'win32'>>().not.toExtend<WindowsHandle<'memory', 'win32-kmt'>>()
  expectTypeOf<ShareableHandleOf<'posix-fd', 'memory'>>().toEqualTypeOf<DescriptorHandle<'memory'>>()
  expectTypeOf<ShareableHandleOf<'fabric', 'pool'>>().toEqualTypeOf<FabricHandle<'pool'>>()
  expectTypeOf<ShareableHandleOf<'win32', 'memory'>>().toEqualTypeOf<WindowsHandle<'memory', 'win32'>>()
  expectTypeOf<typeof PhysicalMemory.import>().parameter(1).toEqualTypeOf<ShareableHandle<'memory'>>()
  expectTypeOf<ShareableHandle<'multicast'>>().not.toExtend<ShareableHandle<'memory'>>()
  expectTypeOf<ShareableHandle<'memory'>>().toExtend<ShareableHandle<HandleContent>>()
  expectTypeOf<typeof MulticastObject.import>().parameter(0).toEqualTypeOf<ShareableHandle<'multicast'>>()
  expectTypeOf<PhysicalMemory['export']>().returns.toExtend<
    DescriptorHandle<'memory'> | FabricHandle<'memory'> | WindowsHandle<'memory'>
  >()
})
