import assert from 'node:assert/strict'
import { type Device, DisposedError, type Event, elapsedMs, StatusError } from '@shoal/driver'
import type { Suite } from '../../suite.js'
import { queueDelay } from '../../support/delay.js'

export const eventSuite: Suite = {
  name: 'driver event',
  cases: [
    {
      name: 'an event never recorded is reached',
      async run(t) {
        const event = t.own(t.device.createEvent())
        assert.equal(event.query(), true)
        assert.equal(await event.synchronize(), event)
      },
    },
    {
      name: 'elapsed time is that of the work between two events',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const start = t.own(t.device.createEvent({ timing: true }))
        const end = t.own(t.device.createEvent({ timing: true }))
        await queueDelay(stream, 1)
        stream.record(start)
        await queueDelay(stream, 80)
        end.record(stream)
        await end.synchronize()
        const milliseconds = elapsedMs(start, end)
        assert.ok(milliseconds > 40 && milliseconds < 1000, `${milliseconds} ms`)
      },
    },
    {
      name: 'elapsed time of an event that is not reached is an error, not a number',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream())
        const start = t.own(stream.record(t.device.createEvent({ timing: true })))
        await queueDelay(stream, 60)
        const end = t.own(stream.record(t.device.createEvent({ timing: true })))
        assert.throws(
          () => elapsedMs(start, end),
          (error) => error instanceof StatusError && error.code === 'CUDA_ERROR_NOT_READY' && !error.isSticky,
        )
        await stream.synchronize()
        assert.ok(elapsedMs(start, end) > 0)
      },
    },
    {
      name: 'without timing there is no elapsed time',
      run(t) {
        const stream = t.own(t.device.createStream())
        const timed = t.own(stream.record(t.device.createEvent({ timing: true })))
        const untimed = t.own(stream.record())
        assert.equal(untimed.timing, false)
        assert.throws(() => elapsedMs(timed, untimed), TypeError)
        assert.throws(() => elapsedMs(untimed, timed), TypeError)
        assert.throws(() => elapsedMs(timed, 1 as unknown as Event), TypeError)
      },
    },
    {
      name: 'blocking and interprocess events are made; interprocess with timing is refused',
      async run(t) {
        const stream = t.own(t.device.createStream())
        const blocking = t.own(t.device.createEvent({ blocking: true }))
        stream.record(blocking)
        assert.equal(blocking.synchronizeSync(), blocking)
        if (t.device.attribute('IPC_EVENT_SUPPORTED') === 1) t.own(t.device.createEvent({ interprocess: true }))
        else assert.throws(() => t.device.createEvent({ interprocess: true }), StatusError)
        assert.throws(() => t.device.createEvent({ interprocess: true, timing: true }), TypeError)
      },
    },
    {
      name: 'query and synchronize follow the work before the mark only',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream())
        await queueDelay(stream, 60)
        const mark = t.own(stream.record())
        await queueDelay(stream, 400)
        assert.equal(mark.query(), false)
        await mark.synchronize()
        assert.equal(mark.query(), true)
        assert.equal(stream.query(), false)
        await stream.synchronize()
      },
    },
    {
      name: 'an event disposed of while it is awaited still settles the wait',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream())
        await queueDelay(stream, 60)
        const mark = stream.record()
        const wait = mark.synchronize()
        mark.dispose()
        mark.dispose()
        await wait
        assert.throws(() => mark.query(), DisposedError)
        await assert.rejects(mark.synchronize(), DisposedError)
        assert.throws(() => stream.record(mark), DisposedError)
        assert.throws(() => stream.waitEvent(mark), DisposedError)
      },
    },
    {
      name: 'an event cannot be recorded on a stream of another device',
      requires: { devices: 2 },
      run(t) {
        const [first, second] = t.devices as [Device, Device]
        const stream = t.own(first.createStream())
        const event = t.own(second.createEvent())
        assert.throws(() => stream.record(event), TypeError)
        assert.throws(() => stream.record({} as Event), TypeError)
      },
    },
  ],
}
