import { inspect } from 'node:util'
import { Communicator, UniqueId } from '@shoal/nccl'
import { beforeAll, expect, test } from 'vitest'
import { startSoftwareDevice } from './fixtures/device.js'
import { secondCopy } from './fixtures/secondCopy.js'

beforeAll(startSoftwareDevice)

test('ids differ, and survive conversion to bytes, base64 and JSON', () => {
  const id = UniqueId.create()
  expect(id.toBytes()).toHaveLength(UniqueId.byteLength)
  expect(UniqueId.byteLength).toBe(128)
  expect(id.equals(UniqueId.create())).toBe(false)
  expect(UniqueId.fromBytes(id.toBytes()).equals(id)).toBe(true)
  expect(UniqueId.fromBase64(id.toString()).equals(id)).toBe(true)
  const { travelled } = JSON.parse(JSON.stringify({ travelled: id })) as { travelled: string }
  expect(UniqueId.fromBase64(travelled).equals(id)).toBe(true)
})

test('an id does not share memory with the bytes it was made from or returned', () => {
  const bytes = new Uint8Array(128).fill(7)
  const id = UniqueId.fromBytes(bytes)
  bytes[0] = 1
  id.toBytes()[1] = 1
  expect(id.toBytes()).toEqual(new Uint8Array(128).fill(7))
})

test('UniqueId refuses wrong bytes and wrong base64', () => {
  expect(() => UniqueId.fromBytes(new Uint8Array(127))).toThrow(RangeError)
  expect(() => UniqueId.fromBytes('AA==' as unknown as Uint8Array)).toThrow(TypeError)
  expect(() => UniqueId.fromBase64(Buffer.alloc(127).toString('base64'))).toThrow(RangeError)
  expect(() => UniqueId.fromBase64(`${Buffer.alloc(128).toString('base64').slice(0, -1)}!`)).toThrow(RangeError)
  expect(() => UniqueId.fromBase64(undefined as unknown as string)).toThrow(TypeError)
})

test('only an id with the same bytes equals an id', () => {
  const id = UniqueId.create()
  for (const other of [null, undefined, {}, id.toBytes(), id.toString(), Object.create(UniqueId.prototype)]) {
    expect(id.equals(other)).toBe(false)
  }
})

test('a UniqueId prints one line', () => {
  expect(inspect(UniqueId.fromBytes(new Uint8Array(128)))).toBe("UniqueId { bytes: 'AAAAAAAAAAAAAAAA…' }")
})

test('an id of another copy of the package is refused', async () => {
  const other = await secondCopy()
  const id = other.UniqueId.fromBytes(new Uint8Array(128))
  await expect(Communicator.initRank({ device: 0, rank: 0, worldSize: 1, id })).rejects.toThrow(
    'UniqueId of the copy of the package at',
  )
})
