import { inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DisposedError, StatusError } = await import('@shoal/types')
const { Context, contextOf, Stream } = await import('@shoal/driver/shared')
const { cuCtxGetCurrent, cuCtxSetCurrent } = await import('@shoal/cuda-sys/driver')
const { NativeMemory } = await import('@shoal/ffi')
const { TestDevice, delay } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const context = device.primaryContext
const other = second.primaryContext
const cell = NativeMemory.allocate(8)

function current(): bigint {
  cuCtxGetCurrent(cell)
  return cell.u64[0] as bigint
}

afterAll(() => {
  device.dispose()
  second.dispose()
})

test('a device has one context, with a handle and a version', () => {
  expect(device.primaryContext).toBe(context)
  expect(context).toBeInstanceOf(Context)
  expect([context.device, context.disposed]).toEqual([device, false])
  expect(context.handle).toBeGreaterThan(0n)
  expect(context.handle).not.toBe(other.handle)
  expect(context.apiVersion).toBeGreaterThan(3000)
})

test("two objects of one device share the driver's context", () => {
  const twin = new TestDevice(0)
  expect(twin.primaryContext).not.toBe(context)
  expect(twin.primaryContext.handle).toBe(context.handle)
  twin.dispose()
  expect([context.disposed, device.primaryContextState.active]).toEqual([false, true])
})

describe('Context.run', () => {
  test('makes the context current while the function runs, and returns its result', () => {
    context.setCurrent()
    expect([context.isCurrent, other.isCurrent]).toEqual([true, false])
    expect(other.run(() => [current(), context.run(current), current()])).toEqual([
      other.handle,
      context.handle,
      other.handle,
    ])
    expect(current()).toBe(context.handle)
  })

  test('restores the previous current context, or none, when the function throws', () => {
    const failure = new Error('of the program')
    cuCtxSetCurrent(0n as typeof context.handle)
    expect(() =>
      context.run(() => {
        throw failure
      }),
    ).toThrow(failure)
    expect([current(), context.isCurrent]).toEqual([0n, false])
  })

  test('refuses a value that is not a function, and an asynchronous function', () => {
    expect(() => context.run(5 as never)).toThrow(new TypeError('Context.run: fn must be a function, not 5'))
    const message = 'Context.run: fn must be a synchronous function, not one that returns a promise'
    // Its rejection is not an unhandled rejection.
    expect(() => context.run(async () => Promise.reject(new Error('unheard')))).toThrow(new TypeError(message))
    expect(context.run(() => null)).toBe(null)
  })

  test('setCurrent() lasts until another context is made current', () => {
    other.setCurrent()
    expect([context.isCurrent, other.isCurrent]).toEqual([false, true])
    context.setCurrent()
    expect([context.isCurrent, other.isCurrent]).toEqual([true, false])
  })
})

describe('Context.synchronize', () => {
  test('waits for all streams without blocking the thread', async () => {
    using stream = Stream.create(context, { nonBlocking: true })
    delay(stream, 120)
    let ticks = 0
    const timer = setInterval(() => {
      ticks += 1
    }, 10)
    expect(stream.query()).toBe(false)
    expect(await context.synchronize()).toBe(undefined)
    clearInterval(timer)
    expect([stream.query(), ticks > 1]).toEqual([true, true])
  })

  test('synchronizeSync() blocks until all streams complete', () => {
    using stream = Stream.create(context)
    delay(stream, 60)
    context.synchronizeSync()
    expect(stream.query()).toBe(true)
  })
})

describe('limits of a Context', () => {
  test('are read and set for each context separately', () => {
    const [before, elsewhere] = [context.getLimit('STACK_SIZE'), other.getLimit('STACK_SIZE')]
    context.setLimit('STACK_SIZE', 8192)
    expect([context.getLimit('STACK_SIZE'), other.getLimit('STACK_SIZE')]).toEqual([8192, elsewhere])
    context.setLimit('STACK_SIZE', before)
    expect(context.getLimit('STACK_SIZE')).toBe(before)
  })

  test("have names, and a limit refused by the driver throws the driver's error", () => {
    for (const limit of ['MAX', 'stack', '', 0, undefined, null, 'toString']) {
      const refusal = /^Context\.(get|set)Limit: limit must be a limit such as 'STACK_SIZE', not /
      expect(() => context.getLimit(limit as never)).toThrow(refusal)
      expect(() => context.setLimit(limit as never, 1)).toThrow(refusal)
      expect(() => context.getLimit(limit as never)).toThrow(TypeError)
    }
    expect(() => context.getLimit('DEV_RUNTIME_SYNC_DEPTH')).toThrow(StatusError)
    expect(() => context.getLimit('DEV_RUNTIME_SYNC_DEPTH')).toThrow(/^cuCtxGetLimit failed/)
    expect(() => context.setLimit('SHMEM_SIZE', 1)).toThrow(/^cuCtxSetLimit failed/)
  })

  test.each([
    [-1, RangeError],
    [2 ** 53, RangeError],
    [0.5, TypeError],
    ['8192', TypeError],
    [undefined, TypeError],
  ])('refuse the value %s', (value, kind) => {
    const before = context.getLimit('STACK_SIZE')
    const set = (): void => context.setLimit('STACK_SIZE', value as number)
    expect(set).toThrow(kind)
    expect(set).toThrow(/^Context\.setLimit: value must be an integer from 0 to 2\^53 - 1, not /)
    expect(context.getLimit('STACK_SIZE')).toBe(before)
  })
})

describe('caches and remote writes of a Context', () => {
  const isCurrentAgain = (): void => expect(current()).toBe(other.handle)

  test('resets persisting cache lines, and flushes RDMA writes if the device supports it', () => {
    other.setCurrent()
    expect(context.resetPersistingL2Cache()).toBe(undefined)
    const canFlush = (device.attribute('GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS') & 1) === 1
    for (const scope of [undefined, 'owner', 'all-devices'] as const) {
      if (canFlush) context.flushRdmaWrites(scope)
      else expect(() => context.flushRdmaWrites(scope)).toThrow(/^cuFlushGPUDirectRDMAWrites failed/)
    }
    isCurrentAgain()
    expect(() => context.flushRdmaWrites('everyone' as never)).toThrow(
      /^Context\.flushRdmaWrites: scope must be .*, not 'everyone'/,
    )
  })

  test('throw after the context was disposed', () => {
    const own = new TestDevice(1)
    const gone = own.primaryContext
    own.dispose()
    for (const use of [() => gone.resetPersistingL2Cache(), () => gone.flushRdmaWrites()]) {
      expect(use).toThrow(DisposedError)
    }
  })
})

describe('peer access of a Context', () => {
  test.each([
    ['a device', second],
    ['a context', other],
  ])('is enabled for %s in one direction; enabling twice and disabling an inactive peer succeed', (_, peer) => {
    context.disablePeerAccess(peer)
    context.enablePeerAccess(peer)
    context.enablePeerAccess(peer)
    expect([[...context._peers], [...other._peers]]).toEqual([[1], []])
    context.disablePeerAccess(peer)
    context.disablePeerAccess(peer)
    expect([...context._peers]).toEqual([])
  })

  test('needs another device', async () => {
    for (const call of ['enablePeerAccess', 'disablePeerAccess'] as const) {
      for (const own of [device, context]) {
        expect(() => context[call](own)).toThrow(RangeError)
        expect(() => context[call](own)).toThrow(
          `Context.${call}: peer must be another device, not an object of class `,
        )
      }
      for (const bad of [undefined, null, 1, {}, { ordinal: 1 }]) {
        expect(() => context[call](bad as never)).toThrow(TypeError)
        expect(() => context[call](bad as never)).toThrow(`Context.${call}: peer must be a Device or a Context, not `)
      }
    }
    const copy = await secondCopy()
    const foreign = copy.Device.get(1)
    expect(() => context.enablePeerAccess(foreign as never)).toThrow(twoCopies)
    foreign.dispose()
  })
})

test('streamPriorityRange: a greater priority is a lower number', () => {
  const { least, greatest } = context.streamPriorityRange
  expect(least).toBeGreaterThanOrEqual(0)
  expect(greatest).toBeLessThanOrEqual(0)
  expect(device.streamPriorityRange).toEqual({ least, greatest })
})

test('contextOf() names the kind of a wrong owner, and reports a second copy of the package', async () => {
  expect([contextOf(device, 'f'), contextOf(context, 'f')]).toEqual([context, context])
  expect(() => contextOf(5 as never, 'f', 'place')).toThrow(
    new TypeError('f: place must be a Device or a Context, not 5'),
  )
  const copy = await secondCopy()
  const foreign = copy.Device.get(0)
  expect(() => contextOf(foreign.primaryContext as never, 'f')).toThrow(twoCopies)
  foreign.dispose()
})

test('contextOf() rethrows errors of getters, and refuses a revoked proxy by name', () => {
  const thrown = new Error('thrown by a getter of the program')
  const owner = {
    get primaryContext(): never {
      throw thrown
    },
  }
  expect(() => contextOf(owner as never, 'f')).toThrow(thrown)
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  expect(() => contextOf(proxy as never, 'f')).toThrow(/^f: owner must be a Device or a Context, not /)
})

describe('a Context after its device was disposed', () => {
  test('the context lives exactly as long as the objects in it', async () => {
    const own = new TestDevice(0)
    const { primaryContext } = own
    const stream = Stream.create(own)
    delay(stream, 50)
    const wait = primaryContext.synchronize()
    own.dispose()
    stream.dispose()
    expect(primaryContext.disposed).toBe(false)
    await wait
    expect(primaryContext.disposed).toBe(true)
  })

  test('every call throws DisposedError', async () => {
    const own = new TestDevice(0)
    const gone = own.primaryContext
    own.dispose()
    const uses = [
      () => gone.handle,
      () => gone.apiVersion,
      () => gone.isCurrent,
      () => gone.streamPriorityRange,
      () => gone.setCurrent(),
      () => gone.synchronizeSync(),
      () => gone.run(() => 1),
      () => gone.getLimit('STACK_SIZE'),
      () => gone.setLimit('STACK_SIZE', 1024),
      () => gone.enablePeerAccess(second),
      () => contextOf(gone, 'f'),
    ]
    for (const use of uses) {
      expect(use).toThrow(DisposedError)
      expect(use).toThrow(/^Context was disposed/)
    }
    await expect(gone.synchronize()).rejects.toThrow(DisposedError)
    expect(own.primaryContext).not.toBe(gone)
    expect(own.primaryContext.disposed).toBe(false)
    own.dispose()
  })
})

test('a context is printed in one line, also after it was released', () => {
  const own = new TestDevice(1)
  const { primaryContext } = own
  expect(inspect(primaryContext)).toBe(`Context { device: 1, handle: 0x${primaryContext.handle.toString(16)} }`)
  own.dispose()
  expect(inspect(primaryContext)).toBe('Context { device: 1, disposed: true }')
  expect(String(primaryContext)).toBe('[object Context]')
})
