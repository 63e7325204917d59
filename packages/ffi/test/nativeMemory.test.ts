import { constants } from 'node:buffer'
import { inspect } from 'node:util'
import { createLane, NativeMemory, offThread } from '@shoal/ffi'
import { putI32, putPointer, putSize } from '@shoal/ffi/calls'
import { DisposedError } from '@shoal/types'
import { expect, test } from 'vitest'
import { library, sleepMs } from './support/stubCalls.js'

test('NativeMemory is zeroed, has an address, and views of every width', () => {
  using memory = NativeMemory.allocate(20)
  expect(memory.address % 64n).toBe(0n)
  expect(memory.byteLength).toBe(20)
  expect([...memory.bytes]).toEqual(new Array(20).fill(0))
  memory.u32[0] = 0x3f80_0000
  expect(memory.f32[0]).toBe(1)
  memory.i32[1] = -1
  expect(memory.u64[0]).toBe(0xffff_ffff_3f80_0000n)
  expect([memory.u32.length, memory.u64.length, memory.f64.length]).toEqual([5, 2, 2])
  expect(memory.bytes.buffer).toBe(memory.buffer)
})

test('NativeMemory refuses size zero, and more than an ArrayBuffer can hold', () => {
  for (const size of [-1, constants.MAX_LENGTH + 1, Number.MAX_SAFE_INTEGER]) {
    expect(() => NativeMemory.allocate(size)).toThrow(RangeError)
  }
  for (const size of [1.5, Number.NaN, '5', 8n]) {
    expect(() => NativeMemory.allocate(size as number)).toThrow(TypeError)
  }
})

test('NativeMemory.dispose() frees at once, not at garbage collection', () => {
  const before = process.memoryUsage().rss
  for (let i = 0; i < 16; i++) {
    const memory = NativeMemory.allocate(32 * 2 ** 20)
    // Untouched memory takes no space, freed or not.
    memory.bytes.fill(1)
    memory.dispose()
    expect(memory.byteLength).toBe(0)
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * 2 ** 20)
})

test('NativeMemory disposed while its call is queued lives until the call has run', async () => {
  const lane = createLane()
  const memory = NativeMemory.allocate(1 << 20)
  const slow = offThread({ lane }, () => sleepMs(50))
  const fill = library.bind('fill', 0, 3)
  const filled = offThread({ lane }, () => {
    putPointer(0, memory, 'fill', 'target')
    putSize(1, memory.byteLength, 'fill', 'n')
    putI32(2, 1, 'fill', 'value')
    fill()
  })
  memory.dispose()
  expect(await slow).toEqual([0])
  expect(await filled).toEqual([0])
})

test('NativeMemory has no bytes and no address after dispose(), which may be repeated', () => {
  const memory = NativeMemory.allocate(8)
  const { bytes } = memory
  memory.dispose()
  memory.dispose()
  expect([memory.disposed, memory.byteLength, bytes.length]).toEqual([true, 0, 0])
  expect(() => memory.address).toThrow(DisposedError)
  expect(() => memory.buffer).toThrow(DisposedError)
})

test('NativeMemory prints one line', () => {
  const memory = NativeMemory.allocate(8)
  const address = memory.address.toString(16)
  expect(inspect(memory)).toBe(`NativeMemory { address: 0x${address}, byteLength: 8, disposed: false }`)
  memory.dispose()
  expect(inspect(memory)).toBe(`NativeMemory { address: 0x${address}, byteLength: 0, disposed: true }`)
})

test.for(['transfer', 'transferToFixedLength'] as const)(
  'the buffer of NativeMemory refuses %s(), because it could not be freed after its thread ends',
  (name, context) => {
    if (!(name in ArrayBuffer.prototype)) return context.skip('this Node has no ArrayBuffer.prototype.transfer')
    const memory = NativeMemory.allocate(8)
    const buffer = memory.buffer as ArrayBuffer & Partial<Record<typeof name, () => ArrayBuffer>>
    const words = `NativeMemory.buffer.${name}: the memory stays at its address; slice() gives a copy to move`
    expect(() => buffer[name]?.()).toThrow(new TypeError(words))
    memory.bytes[0] = 7
    expect([...new Uint8Array(memory.buffer.slice(0, 2))]).toEqual([7, 0])
  },
)

test('large NativeMemory takes no page before it is touched', () => {
  const before = process.memoryUsage().rss
  using memory = NativeMemory.allocate(512 * 1024 * 1024)
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024)
  expect(memory.address % 64n).toBe(0n)
  expect([memory.bytes[0], memory.bytes.at(-1)]).toEqual([0, 0])
})
