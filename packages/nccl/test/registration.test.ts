import { inspect } from 'node:util'
import { Communicator } from '@shoal/nccl'
import { DisposedError } from '@shoal/types'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addRegistration, registrationsWithin, removeRegistration } from '../src/lifetime/registeredRanges.js'
import { startSoftwareDevice, TestMemory } from './fixtures/device.js'

let communicators: Communicator[]

beforeAll(async () => {
  startSoftwareDevice()
  communicators = await Communicator.initAll([0, 1])
})

afterAll(async () => {
  for (const communicator of communicators) await communicator.destroy()
})

test('a registration covers device memory until dispose()', async () => {
  const [communicator] = communicators as [Communicator]
  await using memory = await communicator.allocate({ dtype: 'f32', length: 4 })
  const registration = communicator.register(memory)
  expect(registration).toMatchObject({ memory, isEffective: true, disposed: false })
  registration.dispose()
  registration.dispose()
  expect(registration.disposed).toBe(true)
  using again = communicator.register(memory)
  expect(again.disposed).toBe(false)
})

test('a registration ends with its communicator, by destroy and by abort', async () => {
  for (const end of ['destroy', 'abort'] as const) {
    const [communicator] = (await Communicator.initAll([0])) as [Communicator]
    const memory = await communicator.allocate(4096)
    const registration = communicator.register(memory)
    await communicator[end]()
    expect(registration.disposed).toBe(true)
    registration.dispose()
    await memory.free()
  }
})

test('a registration is found for memory that overlaps it on the same device', () => {
  const range = { deviceOrdinal: 0, address: 1000n, byteLength: 100, description: 'a registration' }
  const found = (address: bigint, byteLength: number, deviceOrdinal = 0) =>
    registrationsWithin({ version: 0, context: 0n, address, byteLength, deviceOrdinal })
  addRegistration(range)
  for (const [address, byteLength] of [
    [1000n, 100],
    [900n, 101],
    [1099n, 1],
    [1040n, 10],
    [0n, 5000],
  ] as const) {
    expect(found(address, byteLength)).toEqual([range])
    expect(found(address, byteLength, 1)).toEqual([])
  }
  for (const [address, byteLength] of [
    [900n, 100],
    [1100n, 100],
  ] as const) {
    expect(found(address, byteLength)).toEqual([])
  }
  const second = { ...range, address: 1099n }
  addRegistration(second)
  expect([found(1000n, 99), found(1000n, 100)]).toEqual([[range], [range, second]])
  for (const one of [range, second]) removeRegistration(one)
  expect(found(1000n, 100)).toEqual([])
})

test('registration refuses memory of another device, and an ended communicator', async () => {
  const [communicator, other] = communicators as [Communicator, Communicator]
  const memory = TestMemory.zeros(0, 'f32', 4)
  expect(() => other.register(memory)).toThrow('belongs to device 0')
  expect(() => communicator.register(Float32Array.of(1) as never)).toThrow(TypeError)
  const [ended] = (await Communicator.initAll([0])) as [Communicator]
  await ended.destroy()
  expect(() => ended.register(memory)).toThrow(DisposedError)
  await expect(ended.allocate(16)).rejects.toThrow(DisposedError)
  memory.dispose()
})

test('a registration prints one line, also after disposal', () => {
  const memory = TestMemory.zeros(0, 'f32', 4)
  const registration = (communicators[0] as Communicator).register(memory)
  const facts = `address: 0x${memory.address.toString(16)}, byteLength: 16, deviceOrdinal: 0`
  expect(inspect(registration)).toBe(`Registration { ${facts} }`)
  registration.dispose()
  expect(inspect(registration)).toBe(`Registration { ${facts}, disposed: true }`)
  memory.dispose()
})
