import assert from 'node:assert/strict'
import { type Device, DeviceBuffer, DisposedError, type Event, Stream } from '@shoal/driver'
import { streamProtocol } from '@shoal/types'
import type { Suite } from '../../suite.js'
import { queueDelay } from '../../support/delay.js'

export const streamSuite: Suite = {
  name: 'driver stream',
  cases: [
    {
      name: 'flags and priority are those asked for, ids differ',
      run(t) {
        const { least, greatest } = t.device.primaryContext.streamPriorityRange
        const plain = t.own(t.device.createStream())
        const special = t.own(t.device.createStream({ nonBlocking: true, priority: greatest }))
        assert.equal(plain.nonBlocking, false)
        assert.equal(plain.priority, 0)
        assert.equal(special.nonBlocking, true)
        assert.equal(special.priority, greatest)
        assert.notEqual(plain.id, special.id)
        assert.throws(() => t.device.createStream({ priority: least + 1 }), RangeError)
        assert.throws(() => t.device.createStream({ priority: Number.NaN }), TypeError)
        assert.throws(() => t.device.createStream({ nonBlocking: 1 as unknown as boolean }), TypeError)
      },
    },
    {
      name: 'it offers the stream protocol',
      run(t) {
        const stream = t.own(t.device.createStream())
        assert.deepEqual(stream[streamProtocol], {
          version: 0,
          handle: stream.handle,
          deviceOrdinal: t.device.ordinal,
          context: t.device.primaryContext.handle,
        })
      },
    },
    {
      name: 'an idle stream synchronizes at once, with itself',
      async run(t) {
        const stream = t.own(t.device.createStream())
        assert.equal(await stream.synchronize(), stream)
        assert.equal(stream.synchronizeSync(), stream)
        assert.equal(stream.query(), true)
        assert.equal(await t.device.defaultStream.synchronize(), t.device.defaultStream)
      },
    },
    {
      name: 'a busy stream is not ready until its work has ended',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const start = performance.now()
        await queueDelay(stream, 150)
        assert.equal(stream.query(), false)
        await stream.synchronize()
        const waited = performance.now() - start
        assert.equal(stream.query(), true)
        assert.ok(waited >= 100, `${waited} ms`)
      },
    },
    {
      name: 'the blocking wait blocks until the work has ended',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream())
        await queueDelay(stream, 20)
        stream.synchronizeSync()
        assert.equal(stream.query(), true)
      },
    },
    {
      name: 'many waits on one stream all resolve',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream())
        await queueDelay(stream, 30)
        const results = await Promise.all(Array.from({ length: 200 }, () => stream.synchronize()))
        assert.ok(results.every((result) => result === stream))
      },
    },
    {
      name: 'a host function runs after earlier work, in the order of the calls',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream())
        const order: string[] = []
        const start = performance.now()
        await queueDelay(stream, 80)
        const first = stream.hostFunction(() => order.push('first'))
        const second = stream.hostFunction(() => order.push('second'))
        assert.deepEqual(order, [])
        await Promise.all([first, second])
        assert.deepEqual(order, ['first', 'second'])
        assert.ok(performance.now() - start >= 50)
      },
    },
    {
      name: 'what a host function throws rejects its promise and nothing else',
      async run(t) {
        const stream = t.own(t.device.createStream())
        const thrown = new Error('from the host function')
        const failing = stream.hostFunction(() => {
          throw thrown
        })
        await assert.rejects(failing, thrown)
        await stream.hostFunction(() => undefined)
        await assert.rejects(stream.hostFunction('no function' as unknown as () => void), TypeError)
      },
    },
    {
      name: 'a stream waits for an event of another stream',
      requires: { delay: true },
      async run(t) {
        const producer = t.own(t.device.createStream({ nonBlocking: true }))
        const consumer = t.own(t.device.createStream({ nonBlocking: true }))
        const order: string[] = []
        await queueDelay(producer, 100)
        const produced = producer.hostFunction(() => order.push('produced'))
        const mark: Event = t.own(producer.record())
        consumer.waitEvent(mark)
        const consumed = consumer.hostFunction(() => order.push('consumed'))
        await Promise.all([produced, consumed])
        assert.deepEqual(order, ['produced', 'consumed'])
      },
    },
    {
      name: 'a stream waits for an event of another device',
      requires: { devices: 2, delay: true },
      async run(t) {
        const [first, second] = t.devices as [Device, Device]
        const producer = t.own(first.createStream())
        const consumer = t.own(second.createStream())
        await queueDelay(producer, 100)
        const mark = t.own(producer.record())
        consumer.waitEvent(mark)
        assert.equal(consumer.query(), false)
        await consumer.synchronize()
        assert.equal(mark.query(), true)
      },
    },
    {
      name: 'disposing of a stream with work and waits pending ends in peace',
      requires: { delay: true },
      async run(t) {
        const stream = t.device.createStream()
        await queueDelay(stream, 60)
        const waits = [stream.synchronize(), stream.synchronize()]
        const call = stream.hostFunction(() => undefined)
        stream.dispose()
        stream.dispose()
        await Promise.all([...waits, call])
        assert.equal(stream.disposed, true)
        assert.throws(() => stream.query(), DisposedError)
        assert.throws(() => stream.record(), DisposedError)
        assert.throws(() => stream[streamProtocol], DisposedError)
        await assert.rejects(stream.synchronize(), DisposedError)
        await assert.rejects(
          stream.hostFunction(() => undefined),
          DisposedError,
        )
      },
    },
    {
      name: 'asynchronous disposal waits for the work',
      requires: { delay: true },
      async run(t) {
        const stream = t.device.createStream()
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'i32', 5))
        await queueDelay(stream, 50)
        buffer.fill(7, { stream })
        await stream[Symbol.asyncDispose]()
        assert.equal(stream.disposed, true)
        assert.deepEqual([...buffer.toArraySync()], [7, 7, 7, 7, 7])
      },
    },
    {
      name: 'borrowed streams are used and not destroyed',
      run(t) {
        const owner = t.own(t.device.createStream())
        const borrowed = Stream.borrow(t.device.primaryContext, owner.handle)
        assert.equal(borrowed.id, owner.id)
        borrowed.dispose()
        assert.throws(() => borrowed.query(), DisposedError)
        assert.equal(owner.query(), true)
        assert.throws(() => Stream.adopt(t.device.primaryContext, 1n), RangeError)
      },
    },
    {
      name: 'streams wait for words that others write',
      async run(t) {
        const [one, two] = [0, 1].map(() => t.own(t.device.createStream({ nonBlocking: true })))
        assert(one !== undefined && two !== undefined)
        for (const dtype of ['u32', 'u64'] as const) {
          const words = t.own(DeviceBuffer.zeros(t.device, dtype, 3))
          const word = (index: number) => words.slice(index, index + 1)
          const value = t.random.integer(1, 2 ** 31)
          one.waitValue(word(0), value, 'eq').memoryOperations([
            { operation: 'write', memory: word(1), value: value + 1 },
            { operation: 'wait', memory: word(2), value: 4, condition: 'and' },
          ])
          assert.equal(one.query(), false)
          two.writeValue(word(0), value).waitValue(word(1), value).writeValue(word(2), 6)
          await Promise.all([one.synchronize({ timeout: 20_000 }), two.synchronize({ timeout: 20_000 })])
          assert.deepEqual([...(await words.toArray())].map(Number), [value, value + 1, 6])
        }
      },
    },
  ],
}
