import { inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DisposedError, StatusError } = await import('@shoal/types')
const { DeviceBuffer, Event, finishReleasesSync, Stream } = await import('@shoal/driver/shared')
const { currentContext, DeviceResource, GreenContext, popContext } = await import('@shoal/driver/context')
const { cuCtxGetDevResource, CUdevResource, cuStreamGetGreenCtx, cuStreamSynchronize } = await import(
  '@shoal/cuda-sys/driver'
)
const { NativeMemory } = await import('@shoal/ffi')
const { TestDevice, delay } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)

afterAll(() => {
  device.dispose()
  second.dispose()
})

describe('GreenContext', () => {
  test('exposes its device, context, handles and streams', () => {
    using green = GreenContext.create(DeviceResource.of(device))
    using other = GreenContext.create(DeviceResource.of(device))
    expect([green.device, green.context]).toEqual([device, device.primaryContext])
    expect(green.id).not.toBe(other.id)
    expect(green.handle).not.toBe(other.handle)
    expect(green.contextHandle).not.toBe(device.primaryContext.handle)
    expect(inspect(green)).toMatch(/^GreenContext { device: 0, handle: 0x[0-9a-f]+ }$/)
    using stream = green.createStream({ priority: -2 })
    expect([stream.priority, stream.nonBlocking, stream.context]).toEqual([-2, true, device.primaryContext])
    const cell = NativeMemory.allocate(CUdevResource.size)
    cuStreamGetGreenCtx(stream.handle, cell)
    expect(cell.u64[0]).toBe(green.handle)
    // Raw functions accept the green context as a context.
    const [part] = DeviceResource.of(device).split(2).groups
    using half = GreenContext.create(part as never)
    expect(cuCtxGetDevResource(half.contextHandle as never, cell, 1)).toBe(0)
    expect(CUdevResource.read(cell).sm.smCount).toBe(2)
  })

  test('can become the current context: streams created meanwhile belong to it', () => {
    using green = GreenContext.create(DeviceResource.of(device))
    green.push()
    const cell = NativeMemory.allocate(8)
    // Acts as another library, because objects of this package name their context.
    const current = currentContext()
    expect(current?.device.ordinal).toBe(0)
    expect(popContext().handle).toBe(current?.handle)
    using stream = Stream.create(device)
    cuStreamGetGreenCtx(stream.handle, cell)
    expect(cell.u64[0]).toBe(0n)
  })

  test('disposed before its stream makes the stream throw, and the stream can still be disposed', async () => {
    const green = GreenContext.create(DeviceResource.of(device))
    const stream = green.createStream()
    using memory = DeviceBuffer.zeros(device, 'u8', 4)
    memory.fill(1, { stream })
    const { handle } = stream
    await stream.synchronize()
    green.dispose()
    for (const act of [
      () => stream.handle,
      () => stream.query(),
      () => stream.record(),
      () => memory.fill(1, { stream }),
      () => stream.synchronizeSync(),
      () => memory.toArraySync({ stream }),
    ]) {
      expect(act).toThrow(new DisposedError('GreenContext'))
    }
    await expect(stream.synchronize()).rejects.toThrow(DisposedError)
    finishReleasesSync()
    // The driver reports it too, to callers with the handle.
    expect(cuStreamSynchronize(handle)).not.toBe(0)
    stream.dispose()
    expect(() => green.handle).toThrow(DisposedError)
    expect(() => green.createStream()).toThrow(DisposedError)
    expect(() => green.resource).toThrow(DisposedError)
    green.dispose()
    // Work queued before the end of the green context still runs.
    const short = GreenContext.create(DeviceResource.of(device))
    const queue = short.createStream()
    delay(queue, 30)
    memory.fill(9, { stream: queue })
    using event = Event.create(device)
    queue.record(event)
    short.dispose()
    await event.synchronize()
    expect([...memory.toArraySync()]).toEqual([9, 9, 9, 9])
    await queue[Symbol.asyncDispose]()
  })

  test('records and waits only for events of its streams', async () => {
    const [first, other] = DeviceResource.of(device).split(2).groups
    using green = GreenContext.create(first as never)
    using another = GreenContext.create(other as never)
    using stream = green.createStream()
    using busy = another.createStream()
    using word = DeviceBuffer.zeros(device, 'u32', 1)
    using event = Event.create(device)
    busy.waitValue(word, 1)
    expect(green.record(event)).toBe(event)
    await event.synchronize()
    expect(busy.query()).toBe(false)
    // Work of the green context waits for the other one's work, also on streams created later.
    another.record(event)
    green.waitEvent(event)
    using later = green.createStream()
    using memory = DeviceBuffer.zeros(device, 'u8', 2)
    memory.slice(0, 1).fill(1, { stream })
    memory.slice(1, 2).fill(1, { stream: later })
    using free = Stream.create(device, { nonBlocking: true })
    expect([stream.query(), later.query(), free.query()]).toEqual([false, false, true])
    free.writeValue(word, 1)
    await Promise.all([stream.synchronize(), later.synchronize()])
    expect(busy.query()).toBe(true)
    expect([...memory.toArraySync()]).toEqual([1, 1])
  })

  test('retains the primary context of its device', () => {
    const own = new TestDevice(1)
    const green = GreenContext.create(DeviceResource.of(own))
    own.dispose()
    expect(green.context.disposed).toBe(false)
    green.disposeSync()
    expect(green.context.disposed).toBe(true)
  })

  test('refuses wrong arguments by name', () => {
    const all = DeviceResource.of(device)
    const elsewhere = DeviceResource.of(second)
    using green = GreenContext.create(all)
    using foreign = Event.create(second)
    for (const [act, message] of [
      [() => GreenContext.create(3 as never), /^GreenContext.create: resources must be a DeviceResource/],
      [() => GreenContext.create([]), /resources must be at least one part/],
      [() => GreenContext.create([all, 3 as never]), /resources\[1\] must be a DeviceResource/],
      [() => GreenContext.create([all, elsewhere]), /resources\[1\] must be of device 0, not 1/],
      [
        () => green.createStream({ priority: 1 }),
        /^GreenContext.createStream: priority must be an integer from -5 to 0/,
      ],
      [() => green.createStream({ nonBlocking: true } as never), /options must have only the keys priority/],
      [() => green.record(foreign), /^GreenContext.record: event must be an Event of this device/],
      [() => green.record(1 as never), /event must be an Event/],
      [() => green.waitEvent(undefined as never), /^GreenContext.waitEvent: event must be an Event/],
    ] as const) {
      expect(act).toThrow(message)
    }
    // Both parts have the same multiprocessors.
    expect(() => GreenContext.create([all, all])).toThrow(StatusError)
  })
})
