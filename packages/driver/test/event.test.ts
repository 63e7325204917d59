import { inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { AbortedError, DisposedError, StatusError, TimeoutError } = await import('@shoal/types')
const { Context, DeviceBuffer, elapsedMs, Event, Stream } = await import('@shoal/driver/shared')
const { cuEventDestroy, cuEventQuery } = await import('@shoal/cuda-sys/driver')
const { TestDevice, delay, throwing } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')
type EventType = import('@shoal/driver/shared').Event

const device = new TestDevice(0)
const second = new TestDevice(1)
const context = device.primaryContext

afterAll(() => {
  device.dispose()
  second.dispose()
})

/** Whether the driver still knows an event's handle. */
function isThere(handle: EventType['handle']): boolean {
  return context.run(() => [0, 600].includes(cuEventQuery(handle)))
}

describe('Event.create', () => {
  test('makes an event without timing, which is complete from the start', () => {
    using event = Event.create(device)
    expect([event.timing, event.query(), event.context, event.device]).toEqual([false, true, context, device])
    expect(event.synchronizeSync()).toBe(event)
    using explicit = Event.create(device, { timing: undefined, blocking: undefined, interprocess: undefined })
    expect(explicit.timing).toBe(false)
  })

  test('accepts a context as owner; device.createEvent() makes an event too', () => {
    expect(context).toBeInstanceOf(Context)
    using event = Event.create(context, { timing: true, blocking: true })
    expect([event.context, event.timing]).toEqual([context, true])
    using made = device.createEvent({ interprocess: true })
    expect([made.context, made.timing]).toEqual([context, false])
  })

  test.each([
    [{ record: true }, "options must have only the keys timing, blocking, interprocess, not 'record'"],
    [
      new (class Options {})(),
      'options must be a plain object such as { timing, blocking, interprocess }, not an object',
    ],
    [null, 'options must be a plain object such as { timing, blocking, interprocess }, not null'],
    [true, 'options must be a plain object such as { timing, blocking, interprocess }, not true'],
    [{ timing: 1 }, 'timing must be a boolean, not 1'],
    [{ blocking: 'yes' }, "blocking must be a boolean, not 'yes'"],
    [{ interprocess: null }, 'interprocess must be a boolean, not null'],
    [{ timing: true, interprocess: true }, 'timing must be false where interprocess is true, not true'],
  ])('refuses the options %o', (options, message) => {
    for (const [api, make] of [
      ['Event.create', () => Event.create(device, options as never)],
      ['Device.createEvent', () => device.createEvent(options as never)],
    ] as const) {
      expect(make).toThrow(TypeError)
      expect(make).toThrow(`${api}: ${message}`)
    }
  })

  test.each(['timing', 'blocking', 'interprocess'] as const)('rethrows an error thrown by the getter of %s', (key) => {
    const own = new TestDevice(0)
    const { primaryContext } = own
    expect(() => Event.create(own, throwing(key))).toThrow('thrown by a getter of the program')
    own.dispose()
    // An incomplete event would keep the context.
    expect(primaryContext.disposed).toBe(true)
  })

  test('refuses wrong owners, owners of a second copy of the package, and a disposed context', async () => {
    for (const owner of [undefined, null, 0, {}, 'device 0']) {
      expect(() => Event.create(owner as never)).toThrow(/^Event\.create: owner must be a Device or a Context, not /)
      expect(() => Event.create(owner as never)).toThrow(TypeError)
    }
    const copy = await secondCopy()
    const foreign = copy.Device.get(0)
    for (const owner of [foreign, foreign.primaryContext]) {
      expect(() => Event.create(owner as never)).toThrow(twoCopies)
    }
    foreign.dispose()
    const own = new TestDevice(0)
    const gone = own.primaryContext
    own.dispose()
    expect(() => Event.create(gone)).toThrow(DisposedError)
  })
})

describe('Event.record', () => {
  test('marks the end of the work queued so far; recording again moves the mark', async () => {
    using stream = Stream.create(device)
    using event = Event.create(device)
    delay(stream, 80)
    expect(event.record(stream)).toBe(event)
    expect(event.query()).toBe(false)
    delay(stream, 250)
    await event.synchronize()
    expect([event.query(), stream.query()]).toEqual([true, false])
    event.record(stream)
    expect(event.query()).toBe(false)
    await event.synchronize()
    expect([event.query(), stream.query()]).toEqual([true, true])
  })

  test('refuses unknown options, and external events outside a capture', () => {
    using event = Event.create(device)
    using stream = Stream.create(device)
    const record = (options: unknown) => () => event.record(stream, options as never)
    const recordOn = (options: unknown) => () => stream.record(event, options as never)
    const wait = (options: unknown) => () => stream.waitEvent(event, options as never)
    for (const [use, api] of [
      [record, 'Event.record'],
      [recordOn, 'Stream.record'],
      [wait, 'Stream.waitEvent'],
    ] as const) {
      expect(use({ outside: true })).toThrow(`${api}: options must have only the keys external, not 'outside'`)
      expect(use({ external: 1 })).toThrow(`${api}: external must be a boolean, not 1`)
      expect(use(stream)).toThrow(`${api}: options must be a plain object`)
      expect(use({ external: true })).toThrow(StatusError)
      expect(use({ external: false })).not.toThrow()
    }
  })

  test('refuses other values than a Stream, and a stream of another device or copy', async () => {
    using event = Event.create(device)
    using other = Stream.create(second)
    using buffer = DeviceBuffer.allocate(device, 'u8', 16)
    const bad = [undefined, null, 0n, {}, device, event, buffer, { record: () => event }]
    for (const stream of bad) {
      expect(() => event.record(stream as never)).toThrow(/^Event\.record: stream must be a Stream, not /)
      expect(() => event.record(stream as never)).toThrow(TypeError)
    }
    expect(() => event.record(other)).toThrow('Event.record: stream must be one of device 0, not')
    const copy = await secondCopy()
    const foreign = copy.Device.get(0)
    const copied = foreign.createStream()
    expect(() => event.record(copied as never)).toThrow(/^Event\.record: stream must be a Stream of the copy of /)
    expect(() => event.record(copied as never)).toThrow(twoCopies)
    copied.dispose()
    foreign.dispose()
    expect(event.query()).toBe(true)
  })
})

describe('Event.synchronize', () => {
  test('resolves with the event when its mark completes, before the stream does', async () => {
    using stream = Stream.create(device)
    using event = Event.create(device)
    delay(stream, 60)
    event.record(stream)
    delay(stream, 300)
    let ticks = 0
    const timer = setInterval(() => {
      ticks += 1
    }, 10)
    expect(await event.synchronize()).toBe(event)
    clearInterval(timer)
    expect(ticks).toBeGreaterThan(0)
    expect(stream.query()).toBe(false)
    await stream.synchronize()
  })

  test('rejects early by its signal or timeout, and the event still completes', async () => {
    using stream = Stream.create(device)
    using event = Event.create(device)
    delay(stream, 250)
    event.record(stream)
    const controller = new AbortController()
    const aborted = event.synchronize({ signal: controller.signal })
    controller.abort('enough')
    const limited = event.synchronize({ timeout: 20 })
    await expect(aborted).rejects.toSatisfy(
      (error) => error instanceof AbortedError && error.operation === 'Event.synchronize' && error.cause === 'enough',
    )
    await expect(limited).rejects.toSatisfy(
      (error) => error instanceof TimeoutError && error.operation === 'Event.synchronize' && error.timeout === 20,
    )
    expect(event.query()).toBe(false)
    expect(await event.synchronize({ timeout: 2 ** 31 - 1 })).toBe(event)
    await expect(event.synchronize({ signal: AbortSignal.abort() })).rejects.toThrow(AbortedError)
  })

  test.each([
    [{ timeout: 2 ** 31 }, RangeError, 'timeout must be a number of milliseconds from 0 to 2147483647, not 2147483648'],
    [{ timeout: -1 }, RangeError, 'timeout must be a number of milliseconds from 0 to 2147483647, not -1'],
    [{ timeout: '5' }, TypeError, "timeout must be a number of milliseconds from 0 to 2147483647, not '5'"],
    [{ signal: 5 }, TypeError, 'signal must be an AbortSignal, not 5'],
    [{ limit: 5 }, TypeError, "options must have only the keys signal, timeout, not 'limit'"],
    [null, TypeError, 'options must be a plain object such as { signal, timeout }, not null'],
  ])('refuses the options %o', async (options, kind, message) => {
    using event = Event.create(device)
    await expect(event.synchronize(options as never)).rejects.toEqual(new kind(`Event.synchronize: ${message}`))
    await expect(event.synchronize(throwing('signal'))).rejects.toThrow('thrown by a getter')
  })

  test('synchronizeSync() blocks until the mark completes', () => {
    using stream = Stream.create(device)
    using event = Event.create(device, { blocking: true })
    delay(stream, 80)
    event.record(stream)
    const begin = performance.now()
    expect(event.synchronizeSync()).toBe(event)
    expect(performance.now() - begin).toBeGreaterThan(60)
  })
})

describe('elapsedMs', () => {
  test('returns the milliseconds between two recorded events', async () => {
    using stream = Stream.create(device)
    using start = Event.create(device, { timing: true })
    using end = Event.create(device, { timing: true })
    start.record(stream)
    delay(stream, 100)
    end.record(stream)
    expect(() => elapsedMs(start, end)).toThrow('CUDA_ERROR_NOT_READY')
    await end.synchronize()
    expect(elapsedMs(start, end)).toBeGreaterThan(95)
    expect(elapsedMs(start, end)).toBeLessThan(60_000)
    expect(elapsedMs(end, start)).toBeLessThan(-95)
  })

  test('refuses events without timing, events never recorded, and other values', () => {
    using plain = Event.create(device)
    using timed = Event.create(device, { timing: true })
    expect(() => elapsedMs(plain, timed)).toThrow(
      new TypeError('elapsedMs: start must be an Event made with { timing: true }, not an object of class Event'),
    )
    expect(() => elapsedMs(timed, plain)).toThrow(/^elapsedMs: end must be an Event made with \{ timing: true \}/)
    expect(() => elapsedMs(timed, {} as never)).toThrow(/^elapsedMs: end must be an Event, not a plain object/)
    expect(() => elapsedMs(undefined as never, timed)).toThrow(/^elapsedMs: start must be an Event, not undefined/)
    expect(() => elapsedMs(timed, timed)).toThrow(StatusError)
    expect(() => elapsedMs(timed, timed)).toThrow(/^cuEventElapsedTime failed/)
    timed.dispose()
    expect(() => elapsedMs(timed, timed)).toThrow(DisposedError)
  })
})

describe('Event.from', () => {
  test('returns an event of the same context unchanged', () => {
    using event = Event.create(device)
    expect(Event.from(device, event)).toBe(event)
    expect(Event.from(context, event)).toBe(event)
  })

  test('borrows an event of another object, which stays its owner', async () => {
    const twin = new TestDevice(0)
    const source = Event.create(twin, { timing: true })
    const event = Event.from(device, source)
    expect(event).not.toBe(source)
    expect([event.handle, event.context, event.timing]).toEqual([source.handle, context, true])
    using stream = Stream.create(device)
    delay(stream, 50)
    event.record(stream)
    expect([event.query(), source.query()]).toEqual([false, false])
    expect(await event.synchronize()).toBe(event)
    event.dispose()
    expect(source.query()).toBe(true)
    const again = Event.from(device, source)
    source.dispose()
    for (const use of [() => again.handle, () => again.query(), () => stream.record(again)]) {
      expect(use).toThrow(DisposedError)
    }
    await expect(again.synchronize()).rejects.toThrow(DisposedError)
    twin.dispose()
  })

  test('refuses events of another device or copy, other values, and wrong owners', async () => {
    using event = Event.create(second)
    expect(() => Event.from(device, event)).toThrow(
      new TypeError('Event.from: event must be an Event of the same context, not an object of class Event'),
    )
    for (const bad of [undefined, null, 8n, {}, device, { handle: 8n, context: {}, timing: false }]) {
      expect(() => Event.from(device, bad as never)).toThrow(/^Event\.from: event must be an Event, not /)
    }
    expect(() => Event.from(event as never, event)).toThrow(/^Event\.from: owner must be a Device or a Context, not /)
    const copy = await secondCopy()
    const foreign = copy.Device.get(0)
    const copied = foreign.createEvent()
    expect(() => Event.from(device, copied as never)).toThrow(twoCopies)
    expect(() => elapsedMs(copied as never, copied as never)).toThrow(twoCopies)
    copied.dispose()
    foreign.dispose()
    event.dispose()
    expect(() => Event.from(second, event)).toThrow(DisposedError)
  })
})

describe('Event.dispose', () => {
  test('takes effect once; later uses of the event throw', async () => {
    using stream = Stream.create(device)
    const event = Event.create(device, { timing: true })
    const { handle } = event
    event.dispose()
    event.dispose()
    expect([event.disposed, isThere(handle)]).toEqual([true, false])
    const uses = [
      () => event.handle,
      () => event.query(),
      () => event.synchronizeSync(),
      () => event.record(stream),
      () => stream.waitEvent(event),
      () => elapsedMs(event, event),
    ]
    for (const use of uses) expect(use).toThrow(DisposedError)
    for (const use of uses) expect(use).toThrow(/^Event was disposed/)
    await expect(event.synchronize()).rejects.toThrow(DisposedError)
  })

  test.each([
    ['the event itself', false],
    ['the one it was borrowed from', true],
  ])('during a wait finishes the wait, and then destroys the event: %s', async (_, isBorrowed) => {
    const twin = new TestDevice(0)
    using stream = Stream.create(device)
    const event = Event.create(isBorrowed ? twin : device)
    const { handle } = event
    const waiting = isBorrowed ? Event.from(device, event) : event
    delay(stream, 120)
    waiting.record(stream)
    const waits = [waiting.synchronize(), waiting.synchronize()]
    event.dispose()
    expect([event.disposed, isThere(handle)]).toEqual([true, true])
    expect(() => waiting.query()).toThrow(DisposedError)
    expect(await Promise.all(waits)).toEqual([waiting, waiting])
    expect([stream.query(), isThere(handle)]).toEqual([true, false])
    twin.dispose()
  })

  test('of the last event releases the context of a disposed device', () => {
    const own = new TestDevice(0)
    const { primaryContext } = own
    const event = Event.create(own)
    own.dispose()
    expect([primaryContext.disposed, event.query()]).toEqual([false, true])
    event.dispose()
    expect(primaryContext.disposed).toBe(true)
  })

  test('reports an event that other code has destroyed', () => {
    const event = Event.create(device)
    context.run(() => cuEventDestroy(event.handle))
    expect(() => event.query()).toThrow(/^cuEventQuery failed/)
    expect(() => event.dispose()).toThrow(/^cuEventDestroy failed/)
    event.dispose()
  })
})

test('an event is printed in one line, also after dispose()', () => {
  const event = Event.create(second, { timing: true })
  expect(inspect(event)).toBe('Event { device: 1, timing: true }')
  event.dispose()
  expect(inspect(event)).toBe('Event { device: 1, timing: true, disposed: true }')
  expect(String(event)).toBe('[object Event]')
})
