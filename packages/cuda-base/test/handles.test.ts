import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import {
  DescriptorHandle,
  FabricHandle,
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
  WindowsHandle,
} from '@shoal/cuda-base'
import { DisposedError } from '@shoal/types'
import { describe, expect, expectTypeOf, test } from 'vitest'

const deviceUuid = 'GPU-01234567-89ab-cdef-0123-456789abcdef'
const memory = { content: 'memory', byteLength: 2 ** 21, deviceUuid } as const
const open = (): number => openSync('/dev/null', 'r')

describe('a descriptor handle', () => {
  test('owns its descriptor and tells everything else as data', () => {
    const descriptor = open()
    const handle = new DescriptorHandle(descriptor, memory)
    expect(handle).toMatchObject({ type: 'posix-fd', ...memory, disposed: false })
    expect(handle.descriptor).toBe(descriptor)
    expect(JSON.parse(JSON.stringify(handle))).toEqual({ type: 'posix-fd', ...memory })
    handle.dispose()
    handle.dispose()
    expect(() => fstatSync(descriptor)).toThrow('EBADF')
    expect(() => handle.descriptor).toThrow(DisposedError)
    expect(handle.toJSON()).toEqual({ type: 'posix-fd', ...memory })
  })

  test('is closed at the end of its block', () => {
    const descriptor = open()
    {
      using handle = new DescriptorHandle(descriptor, { content: 'pool', byteLength: 0 })
      expect(handle.toJSON()).toEqual({ type: 'posix-fd', content: 'pool', byteLength: 0 })
    }
    expect(() => fstatSync(descriptor)).toThrow('EBADF')
  })

  test.each([
    [-1, memory, RangeError],
    [2 ** 31, memory, RangeError],
    [1.5, memory, TypeError],
    ['1', memory, TypeError],
    [0, undefined, TypeError],
    [0, { ...memory, content: 'stream' }, TypeError],
    [0, { ...memory, byteLength: 0 }, RangeError],
    [0, { ...memory, byteLength: -1 }, RangeError],
    [0, { ...memory, byteLength: 2 ** 60 }, RangeError],
    [0, { ...memory, byteLength: '5' }, TypeError],
    [0, { ...memory, deviceUuid: 5 }, TypeError],
  ])('of %s with %j is refused', (descriptor, facts, error) => {
    expect(() => new DescriptorHandle(descriptor as number, facts as typeof memory)).toThrow(error)
  })
})

describe('a fabric handle', () => {
  const bytes = Uint8Array.from({ length: 64 }, (_, index) => index * 3)

  test('is 64 bytes that JSON carries', () => {
    const handle = new FabricHandle(bytes, memory)
    bytes.fill(0, 0, 1)
    handle.bytes.fill(9)
    const again = FabricHandle.fromJSON<'memory'>(JSON.parse(JSON.stringify(handle)))
    expect(again.bytes).toEqual(handle.bytes)
    expect(again.toJSON()).toEqual(handle.toJSON())
    expect(again).toMatchObject({ type: 'fabric', ...memory })
  })

  test.each([0, 1, 63, 65, 128])('of %i bytes is refused', (length) => {
    expect(() => new FabricHandle(new Uint8Array(length), memory)).toThrow(
      new RangeError(`a fabric handle has 64 bytes, not ${length}`),
    )
  })

  test.each([
    undefined,
    null,
    5,
    'AAAA',
    {},
    { ...memory, type: 'posix-fd', handle: 'AAAA' },
    { ...memory, type: 'fabric' },
    { ...memory, type: 'fabric', handle: 5 },
    { ...memory, type: 'fabric', handle: 'AAAA' },
    { type: 'fabric', handle: Buffer.alloc(64).toString('base64') },
  ])('is not made from %j', (data) => {
    expect(() => FabricHandle.fromJSON(data as never)).toThrow(/handle|content/)
  })

  test('takes nothing but bytes', () => {
    expect(() => new FabricHandle([...bytes] as never, memory)).toThrow(TypeError)
    expect(() => new FabricHandle(new Float32Array(16) as never, memory)).toThrow(TypeError)
  })
})

test('a Windows handle is a number of its kind', () => {
  expect(new WindowsHandle('win32', 12n, memory)).toMatchObject({ type: 'win32', value: 12n, ...memory })
  expect(() => new WindowsHandle('posix-fd' as 'win32', 12n, memory)).toThrow(TypeError)
  expect(() => new WindowsHandle('win32', 12 as never, memory)).toThrow(TypeError)
})

describe('kinds', () => {
  test('have the codes of the driver, and bits for several', () => {
    expect((['posix-fd', 'win32', 'win32-kmt', 'fabric'] as const).map((kind) => handleKindCode(kind))).toEqual([
      1, 2, 4, 8,
    ])
    expect(handleKindBits(['fabric', 'posix-fd'], 'handleTypes')).toBe(9)
    expect(handleKindBits('win32', 'handleTypes')).toBe(2)
    expect(handleKindBits([], 'handleTypes')).toBe(0)
    expect(handleKindsOf(9)).toEqual(['posix-fd', 'fabric'])
    expect(platformHandleKind()).toBe(process.platform === 'win32' ? 'win32' : 'posix-fd')
    for (const bad of ['fd', 'toString', 1, undefined]) expect(() => handleKindCode(bad as never)).toThrow(TypeError)
    expect(() => handleKindBits(['fd' as 'fabric'], 'handleTypes')).toThrow("'fd'")
    expect(() => handleKindBits(5 as never, 'handleTypes')).toThrow(TypeError)
  })

  test('are not mixed at run time', () => {
    using pool = new DescriptorHandle(open(), { content: 'pool', byteLength: 0 })
    expect(() => requireHandle(pool, 'memory')).toThrow('the handle is of a pool, not of memory')
    expect(() => requireHandle(pool, 'multicast')).toThrow('the handle is of a pool, not of a multicast object')
    requireHandle(pool, 'pool')
    for (const bad of [undefined, 5, { ...memory, type: 'posix-fd' }, pool.toJSON()]) {
      expect(() => requireHandle(bad as never, 'memory')).toThrow(TypeError)
    }
  })

  test('are not mixed at compile time', () => {
    expectTypeOf<DescriptorHandle<'pool'>>().not.toExtend<DescriptorHandle<'memory'>>()
    expectTypeOf<DescriptorHandle<'memory'>>().not.toExtend<FabricHandle<'memory'>>()
    expectTypeOf<FabricHandle<'memory'>>().not.toExtend<DescriptorHandle<'memory'>>()
    expectTypeOf<WindowsHandle<'memory', 'win32'>>().not.toExtend<WindowsHandle<'memory', 'win32-kmt'>>()
    expectTypeOf<ShareableHandleOf<'posix-fd', 'memory'>>().toEqualTypeOf<DescriptorHandle<'memory'>>()
    expectTypeOf<ShareableHandleOf<'fabric', 'pool'>>().toEqualTypeOf<FabricHandle<'pool'>>()
    expectTypeOf<ShareableHandleOf<'win32', 'memory'>>().toEqualTypeOf<WindowsHandle<'memory', 'win32'>>()
    expectTypeOf<typeof PhysicalMemory.import>().parameter(0).toEqualTypeOf<ShareableHandle<'memory'>>()
    expectTypeOf<ShareableHandle<'multicast'>>().not.toExtend<ShareableHandle<'memory'>>()
    expectTypeOf<ShareableHandle<'memory'>>().toExtend<ShareableHandle<HandleContent>>()
    expectTypeOf<typeof MulticastObject.import>().parameter(0).toEqualTypeOf<ShareableHandle<'multicast'>>()
    expectTypeOf<PhysicalMemory['export']>().returns.toExtend<
      DescriptorHandle<'memory'> | FabricHandle<'memory'> | WindowsHandle<'memory'>
    >()
  })
})

test('nothing here has touched the driver', () => {
  expect(readFileSync('/proc/self/maps', 'utf8')).not.toContain('libshoal-sim-cuda')
  const descriptor = open()
  closeSync(descriptor)
})
