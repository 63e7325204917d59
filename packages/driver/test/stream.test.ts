import { inspect } from 'node:util'
import { streamProtocol, toStreamHandle } from '@shoal/types'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '3' })
const { DisposedError, AbortedError, StatusError, TimeoutError } = await import('@shoal/types')
const { Context, DeviceBuffer, Event, Stream } = await import('@shoal/driver/shared')
const { TestDevice, delay, injectError, throwing } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')
type StreamOptions = import('@shoal/driver/shared').StreamOptions
type StreamType = import('@shoal/driver/shared').Stream

const device = new TestDevice(0)
const second = new TestDevice(1)
const failing = new TestDevice(2)
const context = device.primaryContext

afterAll(() => {
  for (const one of [device, second, failing]) one.dispose()
})

function refusalOf(fn: () => unknown): unknown {
  try {
    fn()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

const notOwners = [undefined, null, 0, {}, { ordinal: 0 }, 'device 0'] as const

describe('Stream.create', () => {
  test('makes a stream of priority 0 that waits for the legacy default stream', () => {
    using stream = Stream.create(device)
    expect([stream.priority, stream.nonBlocking]).toEqual([0, false])
    expect([stream.context, stream.device]).toEqual([context, device])
    expect(stream.handle).toBeGreaterThan(2n)
    using explicit = Stream.create(device, { nonBlocking: undefined, priority: undefined })
    expect([explicit.priority, explicit.nonBlocking]).toEqual([0, false])
  })

  test('accepts a context as owner, and a device as its primary context', () => {
    expect(context).toBeInstanceOf(Context)
    using stream = Stream.create(context)
    expect(stream.context).toBe(context)
    using made = device.createStream({ nonBlocking: true })
    expect([made.context, made.nonBlocking]).toEqual([context, true])
  })

  test('accepts exactly the priorities of the device', () => {
    const { least, greatest } = context.streamPriorityRange
    expect(greatest).toBeLessThan(least)
    for (let priority = greatest; priority <= least; priority += 1) {
      using stream = Stream.create(device, { priority })
      expect(stream.priority).toBe(priority)
    }
    const range = `an integer from ${greatest} to ${least}`
    for (const priority of [greatest - 1, least + 1, Number.NEGATIVE_INFINITY]) {
      expect(refusalOf(() => Stream.create(device, { priority }))).toEqual(
        new RangeError(`Stream.create: priority must be ${range}, not ${priority}`),
      )
    }
    for (const priority of [0.5, Number.NaN, '0' as never]) {
      expect(refusalOf(() => Stream.create(device, { priority }))).toBeInstanceOf(TypeError)
    }
  })

  test('assigns each stream a unique id', () => {
    using one = Stream.create(device)
    using other = Stream.create(second)
    expect(typeof one.id).toBe('bigint')
    expect(one.id).toBe(one.id)
    expect(new Set([one.id, other.id, device.defaultStream.id]).size).toBe(3)
  })

  test.each([
    [{ external: true }, "options must have only the keys nonBlocking, priority, not 'external'"],
    [Object.create({ blocking: true }), 'options must be a plain object such as { nonBlocking, priority }, not '],
    [
      new (class Options {})(),
      'options must be a plain object such as { nonBlocking, priority }, not an object of class O',
    ],
    [null, 'options must be a plain object such as { nonBlocking, priority }, not null'],
    [-1, 'options must be a plain object such as { nonBlocking, priority }, not -1'],
    [{ nonBlocking: 1 }, 'nonBlocking must be a boolean, not 1'],
    [{ nonBlocking: null }, 'nonBlocking must be a boolean, not null'],
  ])('refuses the options %o', (options, message) => {
    for (const [api, make] of [
      ['Stream.create', () => Stream.create(device, options as never)],
      ['Device.createStream', () => device.createStream(options as never)],
    ] as const) {
      const error = refusalOf(make) as Error
      expect(error).toBeInstanceOf(TypeError)
      expect(error.message.startsWith(`${api}: ${message}`), error.message).toBe(true)
    }
  })

  test.each(['nonBlocking', 'priority'] as const)(
    'rethrows an error thrown by the getter of %s, and creates nothing',
    (key) => {
      const own = new TestDevice(0)
      const { primaryContext } = own
      expect(() => Stream.create(own, throwing(key) as StreamOptions)).toThrow('thrown by a getter of the program')
      own.dispose()
      // An incomplete stream would keep the context.
      expect(primaryContext.disposed).toBe(true)
    },
  )
})

describe('the owner of a Stream', () => {
  test.each([
    ['create', (owner: never) => Stream.create(owner)],
    ['borrow', (owner: never) => Stream.borrow(owner, 0n)],
    ['adopt', (owner: never) => Stream.adopt(owner, 8n)],
    ['from', (owner: never) => Stream.from(owner, device.defaultStream)],
  ] as const)('of Stream.%s must be a live device or context', async (name, make) => {
    for (const owner of notOwners) {
      const error = refusalOf(() => make(owner as never)) as Error
      expect(error).toBeInstanceOf(TypeError)
      expect(error.message.startsWith(`Stream.${name}: owner must be a Device or a Context, not `)).toBe(true)
    }
    const copy = await secondCopy()
    const foreign = copy.Device.get(0)
    for (const owner of [foreign, foreign.primaryContext]) expect(() => make(owner as never)).toThrow(twoCopies)
    foreign.dispose()
    const own = new TestDevice(0)
    const gone = own.primaryContext
    own.dispose()
    expect(() => make(gone as never)).toThrow(DisposedError)
  })
})

describe('Stream.borrow', () => {
  test('leaves the stream to its owner', () => {
    using owned = Stream.create(device, { priority: context.streamPriorityRange.greatest })
    const borrowed = Stream.borrow(device, owned.handle)
    expect([borrowed.handle, borrowed.priority, borrowed.id]).toEqual([owned.handle, owned.priority, owned.id])
    borrowed.dispose()
    expect(() => borrowed.query()).toThrow(DisposedError)
    expect(owned.query()).toBe(true)
  })

  test("takes 0n for the device's default stream", () => {
    const borrowed = Stream.borrow(context, 0n)
    expect(borrowed.handle).toBe(toStreamHandle(null).handle)
    expect(borrowed.handle).toBe(device.defaultStream.handle)
    expect(device.defaultStream).toBe(device.defaultStream)
    expect(borrowed.id).not.toBe(second.defaultStream.id)
    expect(borrowed.nonBlocking).toBe(false)
  })

  test.each([
    [5, TypeError, 'Stream.borrow: handle must be a bigint, not 5'],
    [undefined, TypeError, 'Stream.borrow: handle must be a bigint, not undefined'],
    [-1n, RangeError, 'Stream.borrow: handle must be a bigint of 64 bits without a sign, not -1n'],
    [2n ** 64n, RangeError, `Stream.borrow: handle must be a bigint of 64 bits without a sign, not ${2n ** 64n}n`],
  ])('refuses the handle %s', (handle, kind, message) => {
    expect(refusalOf(() => Stream.borrow(device, handle as bigint))).toEqual(new kind(message))
  })
})

describe('Stream.adopt', () => {
  test('destroys the stream with dispose()', () => {
    const made = Stream.create(device)
    const adopted = Stream.adopt(device, made.handle)
    expect(adopted.id).toBe(made.id)
    adopted.dispose()
    expect(() => made.query()).toThrow(StatusError)
    expect(() => made.dispose()).toThrow(StatusError)
  })

  test.each([0n, 1n, 2n])('refuses the default stream %s, which must never be destroyed', (handle) => {
    expect(refusalOf(() => Stream.adopt(device, handle))).toEqual(
      new RangeError(
        `Stream.adopt: handle must be the handle of a created stream, not of a default stream (${handle})`,
      ),
    )
  })

  test('refuses other values than a handle', () => {
    expect(() => Stream.adopt(device, 8 as never)).toThrow(
      new TypeError('Stream.adopt: handle must be a bigint, not 8'),
    )
    expect(() => Stream.adopt(device, -8n)).toThrow(RangeError)
  })
})

describe('Stream.from', () => {
  test('returns a stream of the same context unchanged', () => {
    using stream = Stream.create(device)
    expect(Stream.from(device, stream)).toBe(stream)
  })

  test('borrows a stream of another object of the device or of a second copy, until that stream is disposed', async () => {
    const copy = await secondCopy()
    const twin = new TestDevice(0)
    const other = copy.Device.get(0)
    for (const source of [Stream.create(twin), other.createStream()]) {
      const stream = Stream.from(device, source as StreamType)
      expect(stream).not.toBe(source)
      expect([stream.handle, stream.context]).toEqual([source.handle, context])
      stream.synchronizeSync()
      expect(await stream.synchronize()).toBe(stream)
      source.dispose()
      for (const use of [() => stream.handle, () => stream.query(), () => stream.record(), () => stream.id]) {
        expect(use).toThrow(DisposedError)
      }
      await stream[Symbol.asyncDispose]()
    }
    twin.dispose()
    other.dispose()
  })

  test('refuses a stream of another device and other values', () => {
    using stream = Stream.create(second)
    expect(refusalOf(() => Stream.from(device, stream))).toEqual(
      new TypeError('Stream.from: stream must be one of device 0, not of device 1'),
    )
    expect(Stream.from(device, null).handle).toBe(0n)
    expect(() => Stream.from(device, 8n)).toThrow(/^Stream\.from: stream must be a CUstream, which is an address, /)
    for (const bad of [5, 'stream']) {
      expect(() => Stream.from(device, bad as never)).toThrow(/^Stream\.from: stream must be a stream, not /)
    }
    for (const bad of [{}, device, { [streamProtocol]: 5 }]) {
      expect(() => Stream.from(device, bad as never)).toThrow(/^Stream\.from: stream(\[.*\])? must be an object/)
    }
    stream.dispose()
    for (const owner of [device, second]) expect(() => Stream.from(owner, stream)).toThrow(DisposedError)
  })
})

describe('work queued on a Stream', () => {
  test('runs in queue order, concurrently with other streams', async () => {
    using slow = Stream.create(device, { nonBlocking: true })
    using quick = Stream.create(device, { nonBlocking: true })
    const order: string[] = []
    delay(slow, 150)
    const all = [slow.hostFunction(() => order.push('slow 1')), slow.hostFunction(() => order.push('slow 2'))]
    all.push(quick.hostFunction(() => order.push('quick')))
    expect([slow.query(), order]).toEqual([false, []])
    await Promise.all(all)
    expect(order).toEqual(['quick', 'slow 1', 'slow 2'])
  })

  test('waits for an event of another stream, also of another device', async () => {
    using first = Stream.create(device)
    using last = Stream.create(second)
    using buffer = DeviceBuffer.allocate(second, 'u8', 16)
    const order: string[] = []
    delay(first, 150)
    const before = first.hostFunction(() => order.push('first'))
    expect(last.waitEvent(first.record())).toBe(last)
    buffer.fill(7, { stream: last })
    const after = last.hostFunction(() => order.push('last'))
    expect(last.query()).toBe(false)
    await Promise.all([before, after])
    expect(order).toEqual(['first', 'last'])
    expect(await buffer.toArray({ stream: last })).toEqual(new Uint8Array(16).fill(7))
  })

  test('query() returns whether all of it has completed', async () => {
    using stream = Stream.create(device)
    expect(stream.query()).toBe(true)
    delay(stream, 100)
    expect(stream.query()).toBe(false)
    await stream.synchronize()
    expect(stream.query()).toBe(true)
  })

  test('synchronizeSync() blocks until it completes and returns the stream', () => {
    using stream = Stream.create(device)
    delay(stream, 80)
    const begin = performance.now()
    expect(stream.synchronizeSync()).toBe(stream)
    expect(performance.now() - begin).toBeGreaterThan(60)
    expect(stream.query()).toBe(true)
  })
})

describe('Stream.record', () => {
  test('marks the work queued so far, in a new event without timing or in the given event', async () => {
    using stream = Stream.create(device)
    using given = Event.create(device)
    delay(stream, 80)
    const mark = stream.record()
    expect([mark.timing, mark.context, mark.query()]).toEqual([false, context, false])
    expect(stream.record(given)).toBe(given)
    delay(stream, 400)
    await given.synchronize()
    expect([mark.query(), given.query(), stream.query()]).toEqual([true, true, false])
    mark.dispose()
    await stream.synchronize()
  })

  test('and waitEvent refuse other values than events, and name the place of a foreign event', async () => {
    using stream = Stream.create(device)
    using foreign = Event.create(second)
    const record = stream.record.bind(stream) as (event: unknown) => void
    for (const bad of [{ record: true }, 5, null, stream, device]) {
      expect(() => record(bad)).toThrow(/^Stream\.record: event must be an Event, not /)
      expect(() => stream.waitEvent(bad as never)).toThrow(/^Stream\.waitEvent: event must be an Event, not /)
    }
    expect(() => stream.waitEvent(undefined as never)).toThrow(
      new TypeError('Stream.waitEvent: event must be an Event, not undefined'),
    )
    expect(() => record(foreign)).toThrow(
      new TypeError('Stream.record: event must be one of device 0, not of device 1'),
    )
    const copy = await secondCopy()
    const other = copy.Device.get(0)
    const copied = other.createEvent()
    expect(() => record(copied)).toThrow(twoCopies)
    expect(() => stream.waitEvent(copied as never)).toThrow(twoCopies)
    copied.dispose()
    other.dispose()
    foreign.dispose()
    expect(() => stream.waitEvent(foreign)).toThrow(DisposedError)
  })
})

describe('Stream.synchronize', () => {
  test('resolves with the stream, without blocking the thread', async () => {
    using stream = Stream.create(device)
    delay(stream, 120)
    let ticks = 0
    const timer = setInterval(() => {
      ticks += 1
    }, 10)
    expect(await stream.synchronize()).toBe(stream)
    clearInterval(timer)
    expect(ticks).toBeGreaterThan(1)
  })

  test('rejects early by its signal or timeout, and the work continues', async () => {
    using stream = Stream.create(device)
    delay(stream, 300)
    const controller = new AbortController()
    const aborted = stream.synchronize({ signal: controller.signal })
    controller.abort('enough')
    const limited = stream.synchronize({ timeout: 20 })
    await expect(aborted).rejects.toSatisfy(
      (error) => error instanceof AbortedError && error.operation === 'Stream.synchronize' && error.cause === 'enough',
    )
    await expect(limited).rejects.toSatisfy(
      (error) => error instanceof TimeoutError && error.operation === 'Stream.synchronize' && error.timeout === 20,
    )
    expect(stream.query()).toBe(false)
    await stream.synchronize({ timeout: 2 ** 31 - 1 })
    expect(stream.query()).toBe(true)
    await expect(stream.synchronize({ signal: AbortSignal.abort() })).rejects.toThrow(AbortedError)
  })

  test.each([
    [{ timeout: 2 ** 31 }, RangeError, 'timeout must be a number of milliseconds from 0 to 2147483647, not 2147483648'],
    [{ timeout: -1 }, RangeError, 'timeout must be a number of milliseconds from 0 to 2147483647, not -1'],
    [{ timeout: Number.NaN }, TypeError, 'timeout must be a number of milliseconds from 0 to 2147483647, not NaN'],
    [{ signal: {} }, TypeError, 'signal must be an AbortSignal, not a plain object'],
    [{ limit: 5 }, TypeError, "options must have only the keys signal, timeout, not 'limit'"],
    [5, TypeError, 'options must be a plain object such as { signal, timeout }, not 5'],
  ])('refuses the options %o', async (options, kind, message) => {
    using stream = Stream.create(device)
    await expect(stream.synchronize(options as never)).rejects.toEqual(new kind(`Stream.synchronize: ${message}`))
    await expect(stream.synchronize(throwing('timeout'))).rejects.toThrow('thrown by a getter')
  })
})

describe('Stream.hostFunction', () => {
  test('resolves after the function returned, and rejects with its error', async () => {
    using stream = Stream.create(device)
    let calls = 0
    const count = (): void => {
      calls += 1
    }
    expect(await stream.hostFunction(count)).toBe(undefined)
    expect(calls).toBe(1)
    const failure = new Error('of the program')
    const failing = stream.hostFunction(() => {
      throw failure
    })
    await expect(failing).rejects.toBe(failure)
    await stream.hostFunction(count)
    expect(calls).toBe(2)
  })

  test('refuses other values than a function', async () => {
    using stream = Stream.create(device)
    await expect(stream.hostFunction(5 as never)).rejects.toEqual(
      new TypeError('Stream.hostFunction: fn must be a function, not 5'),
    )
  })

  test("is not called after the context has failed: the promise rejects with the context's error", async () => {
    const stream = Stream.create(failing)
    delay(stream, 200)
    let isCalled = false
    const promise = stream.hostFunction(() => {
      isCalled = true
    })
    injectError(failing, 719)
    await expect(promise).rejects.toSatisfy(
      (error) => error instanceof StatusError && error.code === 'CUDA_ERROR_LAUNCH_FAILED',
    )
    await expect(stream.synchronize()).rejects.toThrow('CUDA_ERROR_LAUNCH_FAILED')
    await failing.reset()
    expect(isCalled).toBe(false)
    expect(() => stream.handle).toThrow(/^Context \(its device was reset\) was disposed/)
  })
})

describe('Stream.dispose', () => {
  test('takes effect once; queued work still completes, and later uses of the stream throw', async () => {
    const stream = Stream.create(device)
    using mark = Event.create(device)
    let isDone = false
    delay(stream, 60)
    const work = stream.hostFunction(() => {
      isDone = true
    })
    stream.record(mark)
    stream.dispose()
    stream.dispose()
    expect(stream.disposed).toBe(true)
    const uses = [
      () => stream.handle,
      () => stream.id,
      () => stream.priority,
      () => stream.nonBlocking,
      () => stream.query(),
      () => stream.synchronizeSync(),
      () => stream.record(),
      () => stream.record(mark),
      () => stream.waitEvent(mark),
      () => stream[streamProtocol],
      () => toStreamHandle(stream),
      () => Stream.from(second, stream),
    ]
    for (const use of uses) expect(use).toThrow(/^Stream was disposed/)
    for (const use of uses) expect(use).toThrow(DisposedError)
    await expect(stream.synchronize()).rejects.toThrow(DisposedError)
    await expect(stream.hostFunction(() => undefined)).rejects.toThrow(DisposedError)
    await work
    expect(isDone).toBe(true)
    await mark.synchronize()
  })

  test('releases the context with the last stream, and asyncDispose waits for the work', async () => {
    const own = new TestDevice(0)
    const { primaryContext } = own
    const stream = Stream.create(own)
    own.dispose()
    expect([primaryContext.disposed, stream.query()]).toEqual([false, true])
    let isDone = false
    delay(stream, 60)
    stream.hostFunction(() => {
      isDone = true
    })
    await stream[Symbol.asyncDispose]()
    expect(isDone).toBe(true)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(primaryContext.disposed).toBe(true)
    await stream[Symbol.asyncDispose]()
  })
})

test('a stream answers the stream protocol, always with the same object', () => {
  using stream = Stream.create(second)
  const told = stream[streamProtocol]
  expect(told).toEqual({
    version: 0,
    handle: stream.handle,
    deviceOrdinal: 1,
    context: second.primaryContext.handle,
  })
  expect(stream[streamProtocol]).toBe(told)
  expect(Object.isFrozen(told)).toBe(true)
})

test('a stream is printed in one line, also after dispose()', () => {
  const stream = Stream.create(second)
  const facts = `device: 1, handle: 0x${stream.handle.toString(16)}`
  expect(inspect(stream)).toBe(`Stream { ${facts} }`)
  stream.dispose()
  expect(inspect(stream)).toBe(`Stream { ${facts}, disposed: true }`)
  expect(String(stream)).toBe('[object Stream]')
})
