import { inspect } from 'node:util'
import { Worker } from 'node:worker_threads'
import { deviceProtocol } from '@shoal/types'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '3' })
const { DisposedError, StatusError } = await import('@shoal/types')
const {
  Context,
  Device,
  DeviceBuffer,
  DeviceInUseError,
  deviceAttributeNames,
  Event,
  finishReleasesSync,
  MemoryPool,
  Stream,
} = await import('@shoal/driver/shared')
const { TestDevice, delay } = await import('./support/testDevice.js')
const { secondCopy, twoCopies } = await import('./support/secondCopy.js')

const device = Device.get(0)
const second = Device.get(1)

afterAll(() => {
  for (const one of Device.all()) one.dispose()
})

describe('Device.get', () => {
  test('returns one object per device, and counts devices', () => {
    expect(Device.count).toBe(3)
    expect(Device.all().map(({ ordinal }) => ordinal)).toEqual([0, 1, 2])
    expect(Device.get(1)).toBe(second)
    expect(Device.all()[1]).toBe(second)
    expect([device.handle, second.handle]).toEqual([0, 1])
  })

  test.each([
    [3, RangeError],
    [-1, RangeError],
    [0.5, TypeError],
    ['0', TypeError],
    [undefined, TypeError],
    [0n, TypeError],
  ])('refuses the ordinal %s', (ordinal, kind) => {
    expect(() => Device.get(ordinal as number)).toThrow(kind)
    expect(() => Device.get(ordinal as number)).toThrow(/^Device\.get: ordinal must be an integer from 0 to 2, not /)
  })

  test('from() takes ordinals and devices of any package or copy', async () => {
    const copy = await secondCopy()
    expect([Device.from(1), Device.from(second), Device.from(new TestDevice(1))]).toEqual([second, second, second])
    expect(Device.from(copy.Device.get(1))).toBe(second)
    expect(Device.from({ [deviceProtocol]: { version: 0, ordinal: 1 } })).toBe(second)
    expect(() => Device.from({} as never)).toThrow(
      /^Device\.from: device must be an object with \[Symbol\.for\('cuda\./,
    )
    expect(() => new (Device as never as new (ordinal: number, handle: number) => unknown)(9, 9)).toThrow(
      new TypeError('new Device: make it with Device.get, not with new'),
    )
    expect(() => Device.from(3)).toThrow(/^Device\.from: device must be an integer from 0 to 2, not 3/)
    expect(() => Device.from(-1)).toThrow(RangeError)
  })

  test('getByPciBusId() finds a device by its bus address', () => {
    for (const one of Device.all()) expect(Device.getByPciBusId(one.pciBusId)).toBe(one)
    expect(() => Device.getByPciBusId(5 as never)).toThrow(
      new TypeError('Device.getByPciBusId: pciBusId must be a string, not 5'),
    )
    expect(() => Device.getByPciBusId('')).toThrow(RangeError)
    expect(() => Device.getByPciBusId('ffff:ff:1f.0')).toThrow(StatusError)
    expect(() => Device.getByPciBusId('ffff:ff:1f.0')).toThrow(/^cuDeviceGetByPCIBusId failed/)
  })
})

describe('properties of a Device', () => {
  test('are available without a context', () => {
    const untouched = Device.get(2)
    expect(untouched.primaryContextState).toEqual({ active: false, flags: 0 })
    expect(untouched.name.length).toBeGreaterThan(0)
    expect(untouched.uuid).toMatch(/^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(untouched.pciBusId).toMatch(/^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0$/i)
    expect(untouched.totalMemory).toBeGreaterThan(2 ** 20)
    expect(untouched.isSoftware).toBe(true)
    expect(untouched.computeCapability.major).toBe(untouched.attribute('COMPUTE_CAPABILITY_MAJOR'))
    expect(untouched.primaryContextState.active).toBe(false)
  })

  test('include a LUID on Windows only, and whether the device supports execution affinity', () => {
    expect(() => device.luid).toThrow(/^cuDeviceGetLuid failed/)
    expect(device.execAffinitySupported).toBe(false)
  })

  test('include attributes by name', () => {
    const names = deviceAttributeNames()
    expect(names).toContain('MULTIPROCESSOR_COUNT')
    expect(names).not.toContain('MAX')
    expect(new Set(names).size).toBe(names.length)
    expect(device.attribute('WARP_SIZE')).toBe(32)
    for (const bad of ['MAX', 'max', 'WARPS', '', 10, undefined, 'toString']) {
      expect(() => device.attribute(bad as 'WARP_SIZE')).toThrow(TypeError)
      expect(() => device.attribute(bad as 'WARP_SIZE')).toThrow(
        'Device.attribute: attribute must be a name of CU_DEVICE_ATTRIBUTE_… without that prefix, not ',
      )
    }
  })

  test('memoryInfo() shrinks by the allocated bytes', () => {
    const before = device.memoryInfo()
    expect(before.total).toBe(device.totalMemory)
    using buffer = DeviceBuffer.allocate(device, 'u8', 2 ** 22)
    expect(before.free - device.memoryInfo().free).toBeGreaterThanOrEqual(buffer.byteLength)
  })
})

describe('peers of a Device', () => {
  test('are accepted as devices of any package or as ordinals', async () => {
    const copy = await secondCopy()
    for (const peer of [1, second, copy.Device.get(1)]) {
      expect(device.canAccessPeer(peer)).toBe(true)
      expect(device.peerAttribute('ACCESS_SUPPORTED', peer)).toBe(1)
      device.enablePeerAccess(peer)
      expect([...device.primaryContext._peers]).toEqual([1])
      device.disablePeerAccess(peer)
      expect([...device.primaryContext._peers]).toEqual([])
    }
    expect(device.canAccessPeer(device)).toBe(false)
  })

  test('are refused if they are the device itself or no device', () => {
    expect(() => device.enablePeerAccess(device)).toThrow(RangeError)
    expect(() => device.enablePeerAccess(device)).toThrow(/peer must be another device/)
    for (const call of ['canAccessPeer', 'enablePeerAccess', 'disablePeerAccess'] as const) {
      expect(() => device[call](undefined as never)).toThrow(TypeError)
      expect(() => device[call](undefined as never)).toThrow(`Device.${call}: peer must be `)
      expect(() => device[call](3)).toThrow(RangeError)
    }
    expect(() => device.peerAttribute('MAX' as never, 1)).toThrow(
      /^Device\.peerAttribute: attribute must be a name of /,
    )
    expect(() => device.peerAttribute('ACCESS_SUPPORTED', {} as never)).toThrow(/^Device\.peerAttribute: peer must be /)
  })
})

test('limits, priorities and waits of a device are those of its primary context', async () => {
  const { primaryContext } = device
  expect(device.getLimit('STACK_SIZE')).toBe(primaryContext.getLimit('STACK_SIZE'))
  const before = device.getLimit('PRINTF_FIFO_SIZE')
  device.setLimit('PRINTF_FIFO_SIZE', before * 2)
  expect(primaryContext.getLimit('PRINTF_FIFO_SIZE')).toBe(before * 2)
  device.setLimit('PRINTF_FIFO_SIZE', before)
  expect(device.streamPriorityRange).toEqual(primaryContext.streamPriorityRange)
  using stream = device.createStream({ nonBlocking: true })
  delay(stream, 60)
  expect(await device.synchronize()).toBe(device)
  expect(stream.query()).toBe(true)
  delay(stream, 60)
  device.synchronizeSync()
  expect(stream.query()).toBe(true)
})

test('a device creates the objects that live on it', () => {
  using stream = device.createStream()
  using event = device.createEvent({ timing: true })
  using pool = device.createMemoryPool()
  const unit = device.allocationGranularity()
  using memory = device.createPhysicalMemory(unit)
  expect(stream).toBeInstanceOf(Stream)
  expect(event).toBeInstanceOf(Event)
  expect(pool).toBeInstanceOf(MemoryPool)
  expect([stream.device, event.device, event.timing, memory.byteLength]).toEqual([device, device, true, unit])
  expect(device.defaultStream).toBe(device.defaultStream)
  expect(device.defaultMemoryPool.handle).toBe(device.memoryPool.handle)
})

describe('Device.primaryContext and dispose', () => {
  test('the context is retained at first use and released by dispose(), then retained again', () => {
    const last = Device.get(2)
    expect(last.primaryContextState.active).toBe(false)
    const { primaryContext, defaultStream } = last
    expect(primaryContext).toBeInstanceOf(Context)
    expect(last.primaryContextState.active).toBe(true)
    last.disposeSync()
    last.dispose()
    expect([primaryContext.disposed, last.primaryContextState.active]).toEqual([true, false])
    expect(() => defaultStream.query()).toThrow(DisposedError)
    expect(last.primaryContext).not.toBe(primaryContext)
    expect(last.defaultStream.query()).toBe(true)
    last.disposeSync()
    expect(last.primaryContextState.active).toBe(false)
  })
})

describe('Device.reset', () => {
  test('finishes awaited work, then frees everything on the device and starts a fresh context', async () => {
    const own = new TestDevice(1)
    const stream = own.createStream()
    const buffer = DeviceBuffer.allocate(own, 'u8', 100)
    const { primaryContext } = own
    delay(stream, 80)
    let isDone = false
    const wait = stream.synchronize().then(() => {
      isDone = true
    })
    const reset = own.reset()
    const joined = own.reset()
    await Promise.all([reset, joined])
    expect(isDone).toBe(true)
    await wait
    expect([primaryContext.disposed, own.used]).toEqual([true, 0])
    for (const use of [() => stream.query(), () => stream.handle, () => primaryContext.handle]) {
      expect(use).toThrow(/^Context \(its device was reset\) was disposed/)
    }
    expect(() => buffer.address).toThrow(DisposedError)
    stream.dispose()
    using fresh = own.createStream()
    await fresh.synchronize()
    expect(own.primaryContext).not.toBe(primaryContext)
    fresh.dispose()
    own.dispose()
  })

  test('affects the other objects of the device on this thread', async () => {
    const [one, twin] = [new TestDevice(1), new TestDevice(1)]
    const contexts = [one.primaryContext, twin.primaryContext]
    await one.reset()
    expect(contexts.map(({ disposed }) => disposed)).toEqual([true, true])
    expect(twin.primaryContext.disposed).toBe(false)
    one.dispose()
    twin.dispose()
  })

  test('refuses uses of the device until it completes', async () => {
    const own = new TestDevice(1)
    const { primaryContext } = own
    // A reset waits for pending releases.
    finishReleasesSync()
    const reset = own.reset()
    // Only the event loop receives the native thread's end, and it has no turn in between.
    for (let turn = 0; turn < 100 && !primaryContext.disposed; turn += 1) await undefined
    expect(() => own.createStream()).toThrow(DeviceInUseError)
    expect(() => own.primaryContext).toThrow('device 1: is being reset')
    await reset
    own.dispose()
  })

  test('is refused in a worker and destroys nothing', async () => {
    const code = `
      import { parentPort } from 'node:worker_threads'
      const { Device } = await import(${JSON.stringify(import.meta.resolve('@shoal/driver/shared'))})
      const error = await Device.get(0).reset().catch((error) => error)
      parentPort.postMessage([error.code, error.message, Device.get(0).primaryContextState.active])
    `
    using stream = device.createStream()
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`))
    const [answer] = await new Promise<unknown[][]>((resolve, reject) => {
      worker.once('message', (message) => resolve([message]))
      worker.once('error', reject)
    })
    await worker.terminate()
    expect(answer).toEqual([
      'SHOAL_DEVICE_IN_USE',
      'device 0: cannot be reset from a worker, because other threads may be using it',
      true,
    ])
    expect(stream.query()).toBe(true)
  })
})

test('a Device of a second copy of the package is reported as such when used as an owner', async () => {
  const copy = await secondCopy()
  expect(() => Stream.create(copy.Device.get(0) as never)).toThrow(twoCopies)
  expect(() => Stream.create(0 as never)).toThrow(
    new TypeError('Stream.create: owner must be a Device or a Context, not 0'),
  )
})

test('a device is printed in one line, also after dispose()', () => {
  const last = Device.get(2)
  const line = `Device 2 (${last.name})`
  expect(inspect(last)).toBe(line)
  void last.primaryContext
  last.dispose()
  expect(inspect(last)).toBe(line)
  expect(String(last)).toBe('[object Device]')
  expect(last[deviceProtocol]).toEqual({ version: 0, ordinal: 2 })
})
