import { cuCtxGetCurrent, cuCtxSetCurrent } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { FeatureNotSupportedError, VersionTooOldError } from '@shoal/types'
import { afterAll, expect, test } from 'vitest'
import { compile, shimEnvironment } from './support/shim.js'

Object.assign(process.env, shimEnvironment(compile('multicastShim')), { SHOAL_SIM_DEVICES: '2', SHIM_VERSION: '12000' })
const { Device, driverVersion, Event, elapsedMs, ManagedBuffer, MemoryPool, Module } = await import('@shoal/driver')
const { emptyNode, Graph } = await import('@shoal/driver/graph')
const { CreatedContext } = await import('@shoal/driver/context')
const { prefetchBatch } = await import('@shoal/driver/memory')

const device = Device.get(0)
const other = Device.get(1).primaryContext
const ptx = `.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing(.param .u64 at) { ret; }\n`
const cell = NativeMemory.allocate(8)

afterAll(() => {
  for (const each of Device.all()) each.dispose()
})

test('on an older driver, elapsedMs uses the older function', async () => {
  expect(driverVersion().toString()).toBe('12.0')
  using stream = device.createStream()
  using start = Event.create(device, { timing: true })
  using end = Event.create(device, { timing: true })
  for (let time = 0; time < 2; time += 1) {
    stream.record(start)
    await stream.hostFunction(() => undefined)
    stream.record(end)
    await stream.synchronize()
    const milliseconds = elapsedMs(start, end)
    expect(milliseconds).toBeGreaterThan(0)
    expect(milliseconds).toBeLessThan(600_000)
  }
  stream.record(end).synchronizeSync()
  stream.record(start).synchronizeSync()
  expect(elapsedMs(start, end)).toBeLessThan(0)
  using never = Event.create(device, { timing: true })
  expect(() => elapsedMs(start, never)).toThrow(/^cuEventElapsedTime failed/)
})

test('a driver that cannot describe kernel parameters accepts a signature unchecked', () => {
  using module = Module.loadSync(device, ptx)
  const kernel = module.kernel('nothing', ['u32', 'u32'])
  expect(() => kernel.parameters).toThrow(VersionTooOldError)
  using graph = Graph.create(device)
  expect(() => graph.add(emptyNode())).toThrow(VersionTooOldError)
})

test('functions missing in an older driver are refused, and the next call runs in the right context', () => {
  using managed = ManagedBuffer.allocate(device, 'u8', 16)
  using stream = device.createStream()
  using event = stream.record()
  using graph = Graph.create(device)
  using inner = Graph.create(device)
  const current = (): bigint => {
    cuCtxGetCurrent(cell)
    return cell.u64[0] as bigint
  }
  for (const [since, use] of [
    ['13.0', () => prefetchBatch(device, [{ memory: managed, place: device }], { stream })],
    ['12.1', () => device.primaryContext.setFlags({})],
    ['12.5', () => device.primaryContext.record(event)],
    ['12.5', () => CreatedContext.create(device)],
    ['12.9', () => graph.addGraph(inner, { move: true })],
  ] as const) {
    for (const before of [other.handle, 0n]) {
      cuCtxSetCurrent(before as typeof other.handle)
      expect(use).toThrow(VersionTooOldError)
      expect(current()).toBe(before)
      expect(use).toThrow(` ${since} or newer; 12.0 is installed`)
      expect(current()).toBe(before)
    }
  }
})

test.each([
  [{ location: 'host' }, 'host', '13.0'],
  [{ managed: true }, 'managed', '13.0'],
  [{ managed: true, location: 'host' }, 'managed', '13.0'],
  [{ location: { hostNode: 0 } }, 'host', '12.2'],
] as const)('an older driver refuses a pool with %o', (options, memory, since) => {
  const make = (): unknown => MemoryPool.create(device, options)
  expect(make).toThrow(FeatureNotSupportedError)
  expect(make).toThrow(
    `NVIDIA CUDA driver does not support a MemoryPool of ${memory} memory here: it needs version ${since} or newer, and 12.0 is installed.`,
  )
})
