import { DisposedError } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
let producer: import('@shoal/driver/shared').Stream
let consumer: import('@shoal/driver/shared').Stream
beforeAll(() => {
  producer = Stream.create(device, { nonBlocking: true })
  consumer = Stream.create(device, { nonBlocking: true })
})
afterAll(() => {
  producer.dispose()
  consumer.dispose()
})

describe('Stream.writeValue and waitValue', () => {
  test('order streams by a word of 4 or 8 bytes', async () => {
    for (const dtype of ['u32', 'u64'] as const) {
      using word = DeviceBuffer.zeros(device, dtype, 1)
      using seen = DeviceBuffer.zeros(device, dtype, 1)
      expect(consumer.waitValue(word, 7, 'eq')).toBe(consumer)
      seen.copyFrom(word, { stream: consumer })
      expect(consumer.query()).toBe(false)
      expect(producer.writeValue(word, 7n)).toBe(producer)
      await consumer.synchronize()
      expect([...(await seen.toArray())].map(Number)).toEqual([7])
    }
  })

  test('wait for each condition', async () => {
    using word = DeviceBuffer.zeros(device, 'u32', 1)
    for (const [condition, value, before, written] of [
      ['geq', 5, 4, 6],
      ['eq', 5, 6, 5],
      ['and', 0b110, 0b001, 0b010],
      ['nor', 0xffff_fff0, 0x0f, 0x07],
    ] as const) {
      producer.writeValue(word, before)
      await producer.synchronize()
      consumer.waitValue(word, value, condition)
      await new Promise((resolve) => setTimeout(resolve, 5))
      expect(consumer.query(), condition).toBe(false)
      producer.writeValue(word, written)
      await consumer.synchronize()
    }
    producer.writeValue(word, 0xffff_fffe)
    consumer.waitValue(word, 0xffff_ffff)
    producer.writeValue(word, 2)
    // A counter that wrapped around meets the condition.
    await Promise.all([producer.synchronize(), consumer.synchronize()])
  })
})

describe('Stream.memoryOperations', () => {
  test('runs several operations in order', async () => {
    using words = DeviceBuffer.zeros(device, 'u64', 3)
    const word = (index: number) => words.slice(index, index + 1)
    consumer.memoryOperations([
      { operation: 'write', memory: word(0), value: 2n ** 64n - 1n },
      { operation: 'wait', memory: word(1), value: 9 },
      { operation: 'write', memory: word(2), value: 3 },
    ])
    producer.memoryOperations([
      { operation: 'wait', memory: word(0), value: 1n, condition: 'and' },
      { operation: 'write', memory: word(1), value: 9 },
    ])
    await Promise.all([producer.synchronize(), consumer.synchronize()])
    expect([...(await words.toArray())]).toEqual([2n ** 64n - 1n, 9n, 3n])
  })

  test('refuses wrong operations by name', () => {
    using word = DeviceBuffer.zeros(device, 'u32', 1)
    using pair = DeviceBuffer.zeros(device, 'u32', 3)
    const write = { operation: 'write', memory: word, value: 1 } as const
    for (const [operations, message] of [
      [[], /^Stream.memoryOperations: operations must be 1 to 256/],
      [new Array(257).fill(write), /operations must be 1 to 256/],
      [7, /operations must be/],
      [[write, { ...write, operation: 'read' }], /operations\[1\].operation must be/],
      [[{ ...write, memory: pair }], /operations\[0\].memory must be memory of 4 or 8 bytes/],
      [[{ ...write, memory: 1 }], /operations\[0\].memory/],
      [[{ ...write, value: 2 ** 32 }], /operations\[0\].value must be an integer from 0 to 2\^32 - 1/],
      [[{ ...write, value: 0.5 }], /operations\[0\].value/],
      [[{ ...write, condition: 'less' }], /operations\[0\].condition/],
      [[{ ...write, flags: 1 }], /flags/],
    ] as const) {
      expect(() => producer.memoryOperations(operations as never)).toThrow(message)
    }
    expect(() => producer.writeValue(word, -1)).toThrow(/^Stream.writeValue: value must be/)
    word.dispose()
    expect(() => consumer.waitValue(word, 1)).toThrow(DisposedError)
  })
})
