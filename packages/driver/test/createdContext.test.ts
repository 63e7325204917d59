import { inspect } from 'node:util'
import type { CreatedContext as CreatedContextOfTest } from '@shoal/driver/context'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DisposedError, StatusError } = await import('@shoal/types')
const { Context, DeviceBuffer, Event, PinnedBuffer, Stream } = await import('@shoal/driver/shared')
const { CreatedContext, currentContext, popContext, pushContext } = await import('@shoal/driver/context')
const { Graph } = await import('@shoal/driver/graph')
const { cuCtxCreate, cuCtxDestroy, cuCtxPopCurrent, cuCtxSetCurrent } = await import('@shoal/cuda-sys/driver')
const { NativeMemory } = await import('@shoal/ffi')
const { TestDevice, delay } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const cell = NativeMemory.allocate(8)

afterAll(() => device.dispose())

describe('CreatedContext', () => {
  test('is a second context on the device, and does not become current', () => {
    cuCtxSetCurrent(0n as never)
    using context = CreatedContext.create(device, { scheduling: 'blocking', keepLocalMemory: true })
    expect(currentContext()).toBeUndefined()
    expect(context).toBeInstanceOf(Context)
    expect(context.device).toBe(device)
    expect(context.handle).not.toBe(device.primaryContext.handle)
    expect(context.flags).toEqual({
      scheduling: 'blocking',
      mapHost: false,
      keepLocalMemory: true,
      coredump: false,
      userCoredump: false,
      synchronousMemory: false,
    })
    expect(inspect(context)).toMatch(/^Context { device: 0, handle: 0x[0-9a-f]+ }$/)
  })

  test('has separate memory, streams and events', async () => {
    const context = CreatedContext.create(device)
    using stream = Stream.create(context, { nonBlocking: true })
    using buffer = DeviceBuffer.from(context, Float32Array.of(1, 2, 3))
    using pinned = PinnedBuffer.allocate(context, 'f32', 3)
    using event = Event.create(context)
    buffer.fill(4, { stream })
    await buffer.copyTo(pinned, { stream })
    stream.record(event)
    await event.synchronize()
    expect(pinned.array).toEqual(Float32Array.of(4, 4, 4))
    expect(stream.context).toBe(context)
    using theirs = Stream.create(device)
    expect(() => buffer.fill(1, { stream: theirs })).toThrow(/stream must be one of device 0, not of another context/)
    context.dispose()
  })

  test('ends with the last object in it, and accepts no new objects meanwhile', () => {
    const context = CreatedContext.create(device)
    const buffer = DeviceBuffer.zeros(context, 'u8', 4)
    context.dispose()
    expect(context.disposed).toBe(false)
    expect([...buffer.fillSync(7).toArraySync()]).toEqual([7, 7, 7, 7])
    expect(() => DeviceBuffer.zeros(context, 'u8', 1)).toThrow(DisposedError)
    expect(() => Stream.create(context)).toThrow('CreatedContext')
    const { handle } = context
    buffer.disposeSync()
    expect(context.disposed).toBe(true)
    expect(() => context.handle).toThrow(DisposedError)
    expect(() => context.flags).toThrow(DisposedError)
    context.dispose()
    // The driver no longer has the context.
    expect(cuCtxDestroy(handle)).not.toBe(0)
  })

  test('has peer access until it ends', () => {
    using second = new TestDevice(1)
    using reader = CreatedContext.create(device)
    const owner = CreatedContext.create(second)
    reader.enablePeerAccess(owner)
    expect(reader._peers).toEqual([1])
    owner.dispose()
    expect(reader._peers).toEqual([])
    using next = CreatedContext.create(second)
    reader.enablePeerAccess(next)
    reader.enablePeerAccess(second)
    expect(reader._peers).toEqual([1, 1])
    reader.disablePeerAccess(next)
    expect(reader._peers).toEqual([1])
    reader.disablePeerAccess(second)
    expect(reader._peers).toEqual([])
  })

  test('survives a reset of the device', async () => {
    const second = new TestDevice(1)
    using context = CreatedContext.create(second)
    using buffer = DeviceBuffer.from(context, Uint8Array.of(1, 2))
    const lost = DeviceBuffer.zeros(second, 'u8', 1)
    await second.reset()
    expect(() => lost.address).toThrow(DisposedError)
    expect([...buffer.toArraySync()]).toEqual([1, 2])
  })

  test('refuses wrong arguments by name', () => {
    for (const [act, message] of [
      [() => CreatedContext.create(5 as never), /^CreatedContext.create: owner must be a Device or a Context/],
      [() => CreatedContext.create(device, { scheduling: 'fast' as never }), /scheduling must be 'auto', 'spin'/],
      [() => CreatedContext.create(device, { mapHost: 1 as never }), /mapHost must be a boolean/],
      [() => CreatedContext.create(device, { execAffinity: 0 }), /execAffinity must be an integer from 1/],
      [() => CreatedContext.create(device, { flags: 1 } as never), /options must have only the keys/],
    ] as const) {
      expect(act).toThrow(message)
    }
    // MPS does not serve this device.
    expect(() => CreatedContext.create(device, { execAffinity: 2 })).toThrow(StatusError)
    expect(() => device.primaryContext.execAffinity).toThrow('CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY')
  })
})

describe('pushContext, popContext and currentContext', () => {
  test('stack contexts of every kind', () => {
    cuCtxSetCurrent(0n as never)
    using context = CreatedContext.create(device)
    pushContext(context)
    expect(currentContext()).toBe(context)
    pushContext(device)
    expect(currentContext()).toBe(device.primaryContext)
    expect(popContext()).toBe(device.primaryContext)
    expect(context.isCurrent).toBe(true)
    expect(popContext()).toBe(context)
    expect(currentContext()).toBeUndefined()
    expect(() => popContext()).toThrow('CUDA_ERROR_INVALID_CONTEXT')
    expect(() => pushContext(3 as never)).toThrow(/^pushContext: context must be a Device or a Context/)
  })

  test('return contexts created by other code, and never destroy them', () => {
    cuCtxSetCurrent(0n as never)
    expect(cuCtxCreate(cell, null, 0, 1)).toBe(0)
    const theirs = cell.u64[0] as bigint
    const context = currentContext()
    expect(context?.handle).toBe(theirs)
    expect(context?.device.ordinal).toBe(1)
    const borrowed = context as CreatedContextOfTest
    borrowed.dispose()
    expect(cuCtxPopCurrent(cell)).toBe(0)
    expect(cuCtxDestroy(theirs as never)).toBe(0)
  })
})

describe('settings of a context', () => {
  test('include a unique id, flags that take effect at once, and a cache preference', () => {
    using one = CreatedContext.create(device)
    using two = CreatedContext.create(device)
    expect(new Set([one.id, two.id, device.primaryContext.id]).size).toBe(3)
    one.setFlags({ scheduling: 'yield', synchronousMemory: true })
    expect(one.flags).toMatchObject({ scheduling: 'yield', synchronousMemory: true, keepLocalMemory: false })
    expect(two.flags.scheduling).toBe('auto')
    expect(one.cacheConfig).toBe('none')
    one.cacheConfig = 'l1'
    expect([one.cacheConfig, two.cacheConfig]).toEqual(['l1', 'none'])
    device.cacheConfig = 'shared'
    expect([device.cacheConfig, device.primaryContext.cacheConfig]).toEqual(['shared', 'shared'])
    device.cacheConfig = 'none'
    device.setPrimaryContextFlags({ scheduling: 'spin' })
    expect(device.primaryContext.flags.scheduling).toBe('spin')
    device.setPrimaryContextFlags({})
    expect(device.primaryContextState.flags & 7).toBe(0)
    for (const [act, message] of [
      [() => one.setFlags(3 as never), /^Context.setFlags: flags must be a plain object/],
      [() => one.setFlags({ scheduling: 4 as never }), /scheduling must be 'auto'/],
      [() => device.setPrimaryContextFlags({ coredump: 'yes' as never }), /^Device.setPrimaryContextFlags: coredump/],
      [
        () => (one.cacheConfig = 'l2' as never),
        /^Context.cacheConfig: config must be 'none', 'shared', 'l1' or 'equal'/,
      ],
      [() => (device.cacheConfig = 1 as never), /^Device.cacheConfig: config must be/],
    ] as const) {
      expect(act).toThrow(message)
    }
  })
})

describe('events of a whole context', () => {
  test('complete when all streams have completed their queued work', async () => {
    using context = CreatedContext.create(device)
    using one = Stream.create(context, { nonBlocking: true })
    using two = Stream.create(context, { nonBlocking: true })
    using word = DeviceBuffer.zeros(context, 'u32', 1)
    using event = Event.create(context)
    one.waitValue(word, 1)
    expect(context.record(event)).toBe(event)
    expect(event.query()).toBe(false)
    two.writeValue(word, 1)
    await event.synchronize()
    expect(one.query()).toBe(true)
  })

  test('hold up all streams, including streams created later', async () => {
    using context = CreatedContext.create(device)
    using slow = Stream.create(device, { nonBlocking: true })
    using before = Stream.create(context, { nonBlocking: true })
    using memory = DeviceBuffer.zeros(context, 'u8', 2)
    delay(slow, 60)
    context.waitEvent(slow.record())
    using after = Stream.create(context, { nonBlocking: true })
    memory.slice(0, 1).fill(1, { stream: before })
    memory.slice(1, 2).fill(1, { stream: after })
    expect([before.query(), after.query()]).toEqual([false, false])
    expect(slow.query()).toBe(false)
    await Promise.all([before.synchronize(), after.synchronize()])
    expect(slow.query()).toBe(true)
    expect([...memory.toArraySync()]).toEqual([1, 1])
  })

  test('are refused during a capture in the context, and the capture is invalidated', () => {
    using context = CreatedContext.create(device)
    using stream = Stream.create(context, { nonBlocking: true })
    using memory = DeviceBuffer.zeros(context, 'u8', 4)
    using event = Event.create(context)
    for (const act of [() => context.record(event), () => context.waitEvent(event)]) {
      expect(() =>
        Graph.capture(stream, () => {
          memory.fill(1, { stream })
          act()
        }),
      ).toThrow('CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED')
    }
    memory.fill(2, { stream }).fill(3, { stream })
    expect([...memory.toArraySync({ stream })]).toEqual([3, 3, 3, 3])
  })

  test('do not keep memory that a graph of the primary context allocates', () => {
    using stream = Stream.create(device, { nonBlocking: true })
    using target = DeviceBuffer.zeros(device, 'u32', 4)
    const context = CreatedContext.create(device)
    cuCtxSetCurrent(context.handle)
    using graph = Graph.capture(stream, () => {
      const memory = DeviceBuffer.allocateOn(stream, 'u32', 4)
      target.copyFrom(memory.fill(7, { stream }), { stream })
      memory.disposeOn(stream)
    })
    cuCtxSetCurrent(0n as never)
    context.dispose()
    for (let count = 0; count < 10; count += 1) DeviceBuffer.zeros(device, 'u32', 4).dispose()
    using step = graph.instantiate()
    step.launch(stream)
    expect([...target.toArraySync({ stream })]).toEqual([7, 7, 7, 7])
  })

  test('refuse events of other contexts and other values', () => {
    using context = CreatedContext.create(device)
    using other = Event.create(device)
    expect(() => context.record(other)).toThrow(/^Context.record: event must be an Event of this context/)
    expect(() => context.record(3 as never)).toThrow(/event must be an Event/)
    expect(() => context.waitEvent({} as never)).toThrow(/^Context.waitEvent: event must be an Event/)
    const gone = Event.create(context)
    gone.dispose()
    expect(() => context.record(gone)).toThrow(DisposedError)
  })
})
