import assert from 'node:assert/strict'
import { Event as DriverEvent, Stream as DriverStream } from '@shoal/driver'
import {
  AbortedError,
  DeviceBuffer,
  DisposedError,
  Event,
  elapsedMs,
  lastError,
  Stream,
  TimeoutError,
} from '@shoal/runtime'
import { streamProtocol } from '@shoal/types'
import type { CaseContext, Suite } from '../../suite.js'
import { queueDelay } from '../../support/delay.js'

/** Keeps a runtime stream busy, through the driver's object for it. */
async function delay(t: CaseContext, stream: Stream, milliseconds: number): Promise<void> {
  await queueDelay(DriverStream.from(t.device.primaryContext, stream), milliseconds)
}

export const streamSuite: Suite = {
  name: 'runtime stream',
  cases: [
    {
      name: 'flags and priority are those asked for, ids differ',
      run(t) {
        const plain = t.own(Stream.create())
        const { greatest, least } = plain.device.streamPriorityRange
        const special = t.own(Stream.create({ nonBlocking: true, priority: greatest, device: t.device }))
        assert.equal(plain.nonBlocking, false)
        assert.equal(plain.priority, 0)
        assert.equal(special.nonBlocking, true)
        assert.equal(special.priority, greatest)
        assert.notEqual(plain.id, special.id)
        assert.throws(() => Stream.create({ priority: least + 1 }), RangeError)
        assert.throws(() => Stream.create({ nonBlocking: 1 as unknown as boolean }), TypeError)
        assert.throws(
          () => Stream.create(plain as unknown as object),
          /^TypeError: Stream.create: options must be a plain object/,
        )
        assert.throws(() => Stream.create({ device: 99 }), RangeError)
      },
    },
    {
      name: 'a busy stream is not ready until its work has ended, and that leaves no last error',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(Stream.create({ nonBlocking: true }))
        lastError()
        await delay(t, stream, 150)
        assert.equal(stream.query(), false)
        assert.equal(lastError(), undefined)
        const event = t.own(stream.record())
        assert.equal(event.query(), false)
        await stream.synchronize()
        assert.equal(stream.query(), true)
        assert.equal(event.query(), true)
      },
    },
    {
      name: 'waits end early as asked, and the work goes on',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(Stream.create({ nonBlocking: true }))
        await delay(t, stream, 300)
        await assert.rejects(stream.synchronize({ timeout: 10 }), TimeoutError)
        await assert.rejects(stream.synchronize({ signal: AbortSignal.timeout(10) }), AbortedError)
        const event = t.own(stream.record())
        await assert.rejects(event.synchronize({ timeout: 1 }), TimeoutError)
        assert.equal(await stream.synchronize(), stream)
        assert.equal(await event.synchronize(), event)
      },
    },
    {
      name: 'streams wait for events of other streams and devices',
      requires: { delay: true },
      async run(t) {
        const [producer, consumer] = [
          t.own(Stream.create({ nonBlocking: true })),
          t.own(Stream.create({ nonBlocking: true })),
        ]
        const memory = t.own(DeviceBuffer.zeros('u8', 1))
        await delay(t, producer, 60)
        memory.fill(1, { stream: producer })
        consumer.waitEvent(t.own(producer.record()))
        assert.equal((await memory.toArray({ stream: consumer }))[0], 1)
      },
    },
    {
      name: 'host functions run in order, and pass on what they throw',
      async run(t) {
        const stream = t.own(Stream.create())
        const order: number[] = []
        const first = stream.hostFunction(() => void order.push(1))
        const second = stream.hostFunction(() => {
          throw new Error('thrown inside')
        })
        // Without a handler from the start, a rejection before `first` has settled would end the process.
        await Promise.all([first, assert.rejects(second, /thrown inside/)])
        assert.deepEqual(order, [1])
        await assert.rejects(stream.hostFunction(5 as unknown as () => void), TypeError)
      },
    },
    {
      name: 'events measure time, when they were made for it',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(Stream.create({ nonBlocking: true }))
        const start = t.own(Event.create({ timing: true }))
        const end = t.own(Event.create({ timing: true, blocking: true }))
        const plain = t.own(Event.create())
        stream.record(start)
        await delay(t, stream, 50)
        end.record(stream)
        end.synchronizeSync()
        const passed = elapsedMs(start, end)
        assert.ok(passed >= 30 && passed < 5000, `${passed} ms`)
        assert.throws(
          () => elapsedMs(start, plain),
          /^TypeError: elapsedMs: end must be an Event made with { timing: true }/,
        )
        assert.throws(() => elapsedMs({} as Event, end), /^TypeError: elapsedMs: start must be an Event/)
        assert.throws(() => Event.create({ timing: true, interprocess: true }), TypeError)
      },
    },
    {
      name: 'disposed streams and events are refused',
      async run(t) {
        const stream = Stream.create()
        const event = Event.create()
        const memory = t.own(DeviceBuffer.zeros('u8', 3))
        stream.dispose()
        stream.dispose()
        event.dispose()
        const other = t.own(Stream.create())
        assert.throws(() => stream.handle, DisposedError)
        assert.throws(() => stream.query(), DisposedError)
        assert.throws(() => memory.fill(1, { stream }), DisposedError)
        assert.throws(() => other.waitEvent(event), DisposedError)
        assert.throws(() => other.record(event), DisposedError)
        await assert.rejects(event.synchronize(), DisposedError)
        await assert.rejects(stream.synchronize(), DisposedError)
        assert.throws(() => DeviceBuffer.allocateOn(stream, 'u8', 3), DisposedError)
        for (const wrong of [{}, 5, null]) {
          assert.throws(() => other.waitEvent(wrong as unknown as Event), TypeError)
          assert.throws(() => other.record(wrong as unknown as Event), TypeError)
        }
        {
          await using scoped = Stream.create()
          memory.fill(2, { stream: scoped })
        }
        assert.deepEqual([...memory.toArraySync()], [2, 2, 2])
      },
    },
    {
      name: 'an event of another device cannot be recorded, but waited for',
      requires: { devices: 2 },
      async run(t) {
        const stream = t.own(Stream.create({ device: 0 }))
        const event = t.own(Event.create({ device: 1 }))
        assert.throws(() => stream.record(event), /Stream.record: event must be one of device 0, not of device 1/)
        stream.waitEvent(event)
        await stream.synchronize()
      },
    },
    {
      name: 'streams of the driver and of the runtime are each other',
      async run(t) {
        const ours = t.own(Stream.create({ nonBlocking: true }))
        const theirs = t.own(t.device.createStream({ nonBlocking: true }))
        const oursThere = DriverStream.from(t.device.primaryContext, ours)
        const theirsHere = Stream.from(theirs)
        assert.equal(oursThere.handle, ours.handle)
        assert.equal(theirsHere.handle, theirs.handle)
        assert.equal(theirsHere.id, theirs.id)
        assert.equal(Stream.from(ours), ours)
        assert.deepEqual(ours[streamProtocol], oursThere[streamProtocol])
        await theirsHere.synchronize()
        await oursThere.synchronize()
        // The borrowed stream ends with its owner. Its own dispose() destroys nothing.
        theirsHere.dispose()
        assert.equal(theirs.query(), true)
        const again = Stream.from(theirs)
        theirs.dispose()
        assert.throws(() => again.query(), DisposedError)
        assert.throws(() => again[streamProtocol], DisposedError)
        ours.dispose()
        assert.throws(() => oursThere.query(), DisposedError)
        assert.throws(() => Stream.from({} as Stream), TypeError)
        assert.throws(() => Stream.borrow(-1n), RangeError)
        assert.throws(() => Stream.adopt(2n), RangeError)
      },
    },
    {
      name: 'a stream is adopted from the driver, and destroyed here',
      run(t) {
        const theirs = t.device.createStream()
        const borrowed = Stream.borrow(theirs.handle)
        assert.equal(borrowed.id, theirs.id)
        borrowed.dispose()
        assert.equal(theirs.query(), true)
        theirs.dispose()
      },
    },
    {
      name: 'events of the driver and of the runtime are each other',
      async run(t) {
        const stream = t.own(Stream.create({ nonBlocking: true }))
        const theirs = t.own(t.device.createEvent({ timing: true }))
        const ours = t.own(Event.create({ timing: true }))
        assert.equal(stream.record(theirs), theirs)
        const driverStream = t.own(t.device.createStream())
        driverStream.waitEvent(ours)
        stream.record(ours)
        const here = Event.from(theirs)
        assert.equal(here.handle, theirs.handle)
        assert.equal(here.timing, true)
        assert.equal(Event.from(ours), ours)
        await here.synchronize()
        await ours.synchronize()
        assert.ok(elapsedMs(theirs, ours) >= 0)
        const there = DriverEvent.from(t.device.primaryContext, ours)
        assert.equal(there.handle, ours.handle)
        assert.equal(there.query(), true)
        ours.dispose()
        assert.throws(() => there.query(), DisposedError)
        here.dispose()
        assert.equal(theirs.query(), true)
      },
    },
    {
      name: 'the default stream is that of the driver, and dispose() leaves it alone',
      async run(t) {
        const stream = Stream.defaultOf()
        assert.equal(stream.handle, t.device.defaultStream.handle)
        assert.equal(await stream.synchronize(), stream)
        stream.dispose()
        assert.equal(Stream.defaultOf(t.device).query(), true)
      },
    },
  ],
}
