import { inspect } from 'node:util'
import { Communicator } from '@shoal/nccl'
import { DisposedError } from '@shoal/types'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSoftwareDevice, TestMemory } from './fixtures/device.js'

let communicators: Communicator[]

beforeAll(async () => {
  startSoftwareDevice()
  communicators = await Communicator.initAll([0, 1])
})

afterAll(async () => {
  for (const communicator of communicators) await communicator.destroy()
})

test('of memory of the device, taken back by dispose', async () => {
  const [communicator] = communicators as [Communicator]
  await using memory = await communicator.allocate({ dtype: 'f32', length: 4 })
  const registration = communicator.register(memory)
  expect(registration).toMatchObject({ memory, isEffective: true, disposed: false })
  await expect(memory.free()).rejects.toThrow('a registration with the communicator of rank 0')
  expect(memory.disposed).toBe(false)
  registration.dispose()
  registration.dispose()
  expect(registration.disposed).toBe(true)
  using again = communicator.register(memory)
  expect(again.disposed).toBe(false)
})

test('ends with its communicator, by destroy and by abort', async () => {
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

test('refuses memory of another device, and a communicator that has ended', async () => {
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

test('prints one line, also after it was taken back', () => {
  const memory = TestMemory.zeros(0, 'f32', 4)
  const registration = (communicators[0] as Communicator).register(memory)
  const facts = `address: 0x${memory.address.toString(16)}, byteLength: 16, deviceOrdinal: 0`
  expect(inspect(registration)).toBe(`Registration { ${facts} }`)
  registration.dispose()
  expect(inspect(registration)).toBe(`Registration { ${facts}, disposed: true }`)
  memory.dispose()
})
