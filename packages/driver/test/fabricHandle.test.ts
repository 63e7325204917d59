import { inspect } from 'node:util'
import { FabricHandle } from '@shoal/driver/shared'
import { expect, test } from 'vitest'
import { memoryFacts } from './support/handleFacts.js'

const bytes = Uint8Array.from({ length: 64 }, (_, index) => index * 3)

test('FabricHandle holds 64 bytes, and survives conversion to JSON', () => {
  const given = bytes.slice()
  const handle = new FabricHandle(given, memoryFacts)
  given.fill(9)
  handle.bytes.fill(9)
  expect(handle.bytes).toEqual(bytes)
  const again = FabricHandle.fromJSON<'memory'>(JSON.parse(JSON.stringify(handle)))
  expect(again.bytes).toEqual(bytes)
  expect(again.toJSON()).toEqual(handle.toJSON())
  expect(again).toMatchObject({ type: 'fabric', ...memoryFacts })
})

test('FabricHandle keeps its data after dispose()', () => {
  const handle = new FabricHandle(bytes, memoryFacts)
  handle.dispose()
  handle.dispose()
  expect(handle.bytes).toEqual(bytes)
})

test.each([0, 1, 63, 65, 128])('FabricHandle refuses %i bytes', (length) => {
  expect(() => new FabricHandle(new Uint8Array(length), memoryFacts)).toThrow(
    new RangeError(`FabricHandle: bytes must be 64 bytes, not ${length}`),
  )
})

test('FabricHandle refuses everything except a Uint8Array', () => {
  expect(() => new FabricHandle([...bytes] as never, memoryFacts)).toThrow(
    new TypeError('FabricHandle: bytes must be a Uint8Array, not an object of class Array'),
  )
  expect(() => new FabricHandle(new Float32Array(16) as never, memoryFacts)).toThrow(TypeError)
})

test.each([
  [undefined, TypeError],
  [null, TypeError],
  [5, TypeError],
  ['AAAA', TypeError],
  [{}, TypeError],
  [{ ...memoryFacts, type: 'posix-fd', handle: 'AAAA' }, TypeError],
  [{ ...memoryFacts, type: 'fabric' }, TypeError],
  [{ ...memoryFacts, type: 'fabric', handle: 5 }, TypeError],
  [{ ...memoryFacts, type: 'fabric', handle: 'AAAA' }, RangeError],
  [{ type: 'fabric', handle: Buffer.alloc(64).toString('base64') }, TypeError],
])('FabricHandle.fromJSON refuses %j', (data, kind) => {
  const make = (): unknown => FabricHandle.fromJSON(data as never)
  expect(make).toThrow(kind)
  expect(make).toThrow(/^FabricHandle/)
})

test('FabricHandle.fromJSON ignores properties added by a later version', () => {
  const json = { ...new FabricHandle(bytes, memoryFacts).toJSON(), numaNode: 3 }
  expect(FabricHandle.fromJSON(json).bytes).toEqual(bytes)
})

test('FabricHandle is printed in one line, without its bytes', () => {
  const handle = new FabricHandle(bytes, { content: 'memory', byteLength: 5 })
  expect(inspect(handle)).toBe("FabricHandle { type: 'fabric', content: 'memory', byteLength: 5 }")
})
