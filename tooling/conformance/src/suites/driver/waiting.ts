import assert from 'node:assert/strict'
import { AbortedError, TimeoutError } from '@shoal/driver'
import type { Suite } from '../../suite.js'
import { queueDelay } from '../../support/delay.js'
import { assertFreeLoop, told } from '../../support/eventLoop/free.js'

export const waitingSuite: Suite = {
  name: 'driver waiting',
  cases: [
    {
      name: 'a wait ends with its signal, and the work goes on',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream())
        await queueDelay(stream, 200)
        const controller = new AbortController()
        const reason = new Error('changed my mind')
        setTimeout(() => controller.abort(reason), 20)
        await assert.rejects(
          stream.synchronize({ signal: controller.signal }),
          (error) => error instanceof AbortedError && error.cause === reason,
        )
        assert.equal(stream.query(), false)
        await stream.synchronize()
        assert.equal(stream.query(), true)
      },
    },
    {
      name: 'a signal aborted before ends the wait at once, one aborted after does nothing',
      async run(t) {
        const stream = t.own(t.device.createStream())
        await assert.rejects(stream.synchronize({ signal: AbortSignal.abort() }), AbortedError)
        const controller = new AbortController()
        await stream.synchronize({ signal: controller.signal })
        controller.abort()
        await assert.rejects(stream.synchronize({ signal: 'no signal' as unknown as AbortSignal }), TypeError)
      },
    },
    {
      name: 'a wait ends with its timeout, and the work goes on',
      requires: { delay: true },
      async run(t) {
        const stream = t.own(t.device.createStream())
        await queueDelay(stream, 200)
        const mark = t.own(stream.record())
        await assert.rejects(
          stream.synchronize({ timeout: 20 }),
          (error) => error instanceof TimeoutError && error.timeout === 20,
        )
        await assert.rejects(mark.synchronize({ timeout: 0 }), TimeoutError)
        assert.equal(stream.query(), false)
        await stream.synchronize({ timeout: 10_000 })
        for (const timeout of [Number.NaN, '5']) {
          await assert.rejects(stream.synchronize({ timeout: timeout as number }), TypeError)
        }
        for (const timeout of [-1, 2 ** 40]) await assert.rejects(stream.synchronize({ timeout }), RangeError)
      },
    },
    {
      name: 'the event loop runs freely while a second of work is awaited',
      requires: { delay: true },
      timeout: 120_000,
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        await queueDelay(stream, 1)
        await stream.synchronize()
        const delay = await assertFreeLoop(
          t,
          () => queueDelay(stream, 1000),
          () => stream.synchronize(),
        )
        t.note(`waited ${delay.waited.toFixed(0)} ms; event-loop delay: ${told(delay)}`)
        assert.ok(delay.waited > 500, `${delay.waited} ms`)
      },
    },
  ],
}
