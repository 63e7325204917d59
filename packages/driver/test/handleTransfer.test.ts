import { AbortedError, TimeoutError } from '@shoal/types'
import { afterAll, describe, expect, expectTypeOf, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const {
  allocationGranularity,
  DescriptorHandle,
  FabricHandle,
  PhysicalMemory,
  receiveHandle,
  sendHandle,
  WindowsHandle,
} = await import('@shoal/driver/shared')
const { DescriptorSocket } = await import('@shoal/ffi')
const { memoryFacts, openNull } = await import('./support/handleFacts.js')
const { TestDevice } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')

const [left, right] = DescriptorSocket.pair()
afterAll(() => {
  left.dispose()
  right.dispose()
})
const device = new TestDevice(0)
const fabric = new FabricHandle(new Uint8Array(64).fill(7), memoryFacts)

test('a descriptor arrives as a new descriptor with the same content, size and device', async () => {
  const options = { handleTypes: 'posix-fd' } as const
  using memory = PhysicalMemory.create(device, allocationGranularity(device, options), options)
  using handle = memory.export()
  await sendHandle(left, handle)
  using arrived = await receiveHandle(right, 'memory', { timeout: 5000 })
  expect(arrived).toBeInstanceOf(DescriptorHandle)
  expect(arrived.toJSON()).toEqual(handle.toJSON())
  expect((arrived as typeof handle).descriptor).not.toBe(handle.descriptor)
  using imported = PhysicalMemory.import(device, arrived)
  expect(imported.byteLength).toBe(memory.byteLength)
})

test('a received handle is never a Windows handle, and its `type` narrows it (checked by tsc)', () => {
  type Arrived = Awaited<ReturnType<typeof receiveHandle<'memory'>>>
  expectTypeOf<Extract<Arrived, { readonly type: 'win32' }>>().toBeNever()
  expectTypeOf<Extract<Arrived, { readonly type: 'posix-fd' }>['descriptor']>().toEqualTypeOf<number>()
  expectTypeOf<Arrived>().toExtend<Parameters<typeof PhysicalMemory.import>[1]>()
})

test('options in a separate variable need a type annotation, because TypeScript widens their strings (checked by tsc)', () => {
  const widened = { handleTypes: 'posix-fd' }
  const typed: import('@shoal/driver/shared').PhysicalMemoryOptions = { handleTypes: 'posix-fd' }
  // @ts-expect-error: a string
  expect(() => allocationGranularity(device, widened)).not.toThrow()
  expect(() => allocationGranularity(device, typed)).not.toThrow()
})

test('a fabric handle arrives as data', async () => {
  await sendHandle(left, fabric)
  expect((await receiveHandle(right, 'memory')).toJSON()).toEqual(fabric.toJSON())
})

describe('sendHandle refuses', () => {
  test.each([
    [undefined, fabric, undefined, 'socket must be a DescriptorSocket, not undefined'],
    [left, {}, undefined, 'handle must be a DescriptorHandle or a FabricHandle, not a plain object'],
    [
      left,
      new WindowsHandle('win32', 1n, memoryFacts),
      undefined,
      'handle must be a DescriptorHandle or a FabricHandle, not an object of class WindowsHandle',
    ],
    [left, fabric, { timeout: '5' }, "timeout must be a number of milliseconds from 0 to 2147483647, not '5'"],
    [
      left,
      fabric,
      { timeOut: 5 },
      "options must have only the keys signal, timeout, not 'timeOut'; did you mean 'timeout'?",
    ],
    [left, fabric, 5, 'options must be a plain object such as { signal, timeout }, not 5'],
  ])('%o, %o with %o', async (socket, handle, options, message) => {
    await expect(sendHandle(socket as typeof left, handle as typeof fabric, options as object)).rejects.toThrow(
      new TypeError(`sendHandle: ${message}`),
    )
  })

  test('a descriptor that does not refer to memory', async () => {
    const [one, other] = DescriptorSocket.pair()
    const handle = new DescriptorHandle(one.descriptor, memoryFacts)
    await expect(sendHandle(left, handle)).rejects.toThrow(
      new TypeError(`sendHandle: handle must have a descriptor of shared memory, and ${one.descriptor} is of a socket`),
    )
    one.dispose()
    await expect(sendHandle(left, handle)).rejects.toThrow(/handle must have an open descriptor, and \d+ is not open/)
    expect(() => handle.dispose()).toThrow('EBADF')
    other.dispose()
  })

  test('a handle of a second copy of the package, and names both copies', async () => {
    const copy = await secondCopy()
    const foreign = new copy.FabricHandle(new Uint8Array(64), memoryFacts)
    await expect(sendHandle(left, foreign as never)).rejects.toThrow(twoCopies)
  })
})

describe('receiveHandle refuses', () => {
  const good = { type: 'posix-fd', ...memoryFacts }
  test.each([
    ['no JSON', 0, 'the message must be the JSON of a handle'],
    ['null', 0, 'the message must be the JSON of a handle, not null'],
    [JSON.stringify(good), 0, 'the message must be with its descriptor, and none came'],
    [JSON.stringify(good), 2, 'the message must be with one descriptor, not 2'],
    [JSON.stringify({ ...good, content: 'pool' }), 1, "the message must be a handle of 'memory', not of 'pool'"],
    [
      JSON.stringify({ ...good, type: 'fabric' }),
      1,
      "the message must be without a descriptor for type 'fabric', and one came",
    ],
  ])('%s with %i descriptors', async (text, count, message) => {
    const descriptors = Array.from({ length: count }, openNull)
    await left.send({ bytes: Buffer.from(text), descriptors })
    await expect(receiveHandle(right, 'memory')).rejects.toThrow(new TypeError(`receiveHandle: ${message}`))
    const { closeSync } = await import('node:fs')
    for (const descriptor of descriptors) closeSync(descriptor)
  })

  test('other values than a socket, and unknown contents', async () => {
    await expect(receiveHandle(5 as never, 'memory')).rejects.toThrow('socket must be a DescriptorSocket, not 5')
    await expect(receiveHandle(right, 'memry' as 'memory')).rejects.toThrow(
      new TypeError("receiveHandle: content must be 'memory', 'pool' or 'multicast', not 'memry'"),
    )
  })

  test('no handle: it waits until its timeout or signal', async () => {
    await expect(receiveHandle(right, 'memory', { timeout: 10 })).rejects.toThrow(TimeoutError)
    await expect(receiveHandle(right, 'memory', { signal: AbortSignal.abort() })).rejects.toThrow(AbortedError)
  })
})
