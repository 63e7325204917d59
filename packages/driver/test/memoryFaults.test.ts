import { readdirSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type CUdeviceptr, cuMemAddressFree, cuMemFree, cuMemRelease, cuMemUnmap, driver } from '@shoal/cuda-sys/driver'
import { bindCall, putCString, slots64 } from '@shoal/ffi/calls'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { compile, shimEnvironment } from './support/shim.js'

const shim = compile('faultShim')
Object.assign(process.env, shimEnvironment(shim), { SHOAL_SIM_DEVICES: '1' })
const {
  AddressRange,
  allocationGranularity,
  Device,
  DeviceBuffer,
  GrowableRange,
  MemoryPool,
  MulticastObject,
  PhysicalMemory,
} = await import('@shoal/driver')
const { finishReleasesSync } = await import('@shoal/driver/shared')

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const [invalidValue, outOfMemory] = [1, 2]
let device: import('@shoal/driver').Device
let unit: number

function call(name: string, argument: string, ...rest: number[]): number {
  const address = driver.rawSymbol(name)
  if (address === undefined) throw new Error(`the fault shim has no ${name}`)
  putCString(0, argument, name, 'name')
  for (const [index, value] of rest.entries()) slots64[index + 1] = BigInt(value)
  return bindCall(address, 1 + rest.length, 'i32', name)()
}

function fail(name: string, status: number = invalidValue, times = 1): void {
  // A failing call would wait for pending releases and repeat itself.
  finishReleasesSync()
  expect(call('shimFail', name, times, status)).toBe(0)
}

const calls = (name: string): number => call('shimCalls', name)
const openDescriptors = (): number => readdirSync('/proc/self/fd').length
/** Returns the bytes in use, after pending releases. */
const used = (): number => {
  finishReleasesSync()
  const { free, total } = device.memoryInfo()
  return total - free
}

function thrownBy(fn: () => unknown): unknown {
  try {
    fn()
  } catch (error) {
    return error
  }
  return undefined
}

beforeEach(() => {
  device = Device.get(0)
  unit = allocationGranularity(device)
  expect(used()).toBe(0)
})

afterEach(async () => {
  expect(used()).toBe(0)
  device.dispose()
  await vi.waitFor(() => expect(device.primaryContextState.active).toBe(false))
})

test.each(['cuMemMap', 'cuMemSetAccess'])('a map() that fails in %s maps nothing', (api) => {
  using physical = PhysicalMemory.create(device, unit * 2)
  using range = AddressRange.reserve(unit * 2)
  const before = calls('cuMemUnmap')
  fail(api)
  expect(thrownBy(() => range.map(physical))).toMatchObject({ api, status: invalidValue })
  expect(range.mappedBytes).toBe(0)
  expect(calls('cuMemUnmap') - before).toBe(api === 'cuMemSetAccess' ? 1 : 0)
  using mapped = range.map(physical)
  DeviceBuffer.view(device, mapped, 'u8').fillSync(1)
})

test('an access that cannot be granted changes nothing', () => {
  using physical = PhysicalMemory.create(device, unit)
  using range = AddressRange.reserve(unit)
  using mapped = range.map(physical)
  fail('cuMemSetAccess')
  expect(thrownBy(() => mapped.setAccess(device, 'read'))).toMatchObject({ api: 'cuMemSetAccess' })
  expect(mapped.getAccess(device)).toBe('readWrite')
})

test.each(['cuMemCreate', 'cuMemMap', 'cuMemSetAccess'])('growing that fails in %s changes nothing', (api) => {
  using range = GrowableRange.reserve(device, { maximumBytes: unit * 8, stepBytes: unit })
  range.resize(unit + 1)
  const start = DeviceBuffer.view(device, range, 'u8', { length: 100 })
  start.fillSync(7)
  const before = used()
  fail(api, outOfMemory)
  expect(thrownBy(() => range.resize(unit * 5))).toMatchObject({ api, status: outOfMemory })
  expect([range.byteLength, range.capacity, used()]).toEqual([unit + 1, unit * 2, before])
  expect(start.toArraySync()).toEqual(new Uint8Array(100).fill(7))
  range.resize(unit * 5)
})

test('a growable range frees its other pieces even if one cannot be freed', () => {
  const range = GrowableRange.reserve(device, { maximumBytes: unit * 4, stepBytes: unit })
  for (const granules of [1, 2, 3]) range.resize(unit * granules)
  const { address } = range
  const before = calls('cuMemUnmap')
  fail('cuMemUnmap')
  expect(thrownBy(() => range.disposeSync())).toMatchObject({ api: 'cuMemUnmap' })
  expect(calls('cuMemUnmap') - before).toBe(3)
  expect(range.disposed).toBe(true)
  range.dispose()
  // The shim prevented this free.
  expect(used()).toBe(unit)
  expect(cuMemUnmap(address as CUdeviceptr, unit)).toBe(0)
  expect(cuMemAddressFree(address as CUdeviceptr, unit * 4)).toBe(0)
})

test('a growable range disposed in the background frees its other pieces even if one fails', async () => {
  const range = GrowableRange.reserve(device, { maximumBytes: unit * 4, stepBytes: unit })
  for (const granules of [1, 2, 3]) range.resize(unit * granules)
  const before = calls('cuMemUnmap')
  fail('cuCtxSynchronize')
  await expect(range[Symbol.asyncDispose]()).rejects.toMatchObject({ api: 'cuCtxSynchronize' })
  expect([calls('cuMemUnmap') - before, used()]).toEqual([3, 0])
})

test.each(['disposeSync', 'asyncDispose'])(
  '%s of a mapping that fails in cuMemUnmap throws and still releases the context',
  async (way) => {
    const physical = PhysicalMemory.create(device, unit)
    const range = AddressRange.reserve(unit)
    const { address } = range
    const mapped = range.map(physical)
    physical.dispose()
    fail('cuMemUnmap')
    if (way === 'disposeSync') expect(thrownBy(() => mapped.disposeSync())).toMatchObject({ api: 'cuMemUnmap' })
    else await expect(mapped[Symbol.asyncDispose]()).rejects.toMatchObject({ api: 'cuMemUnmap' })
    expect(mapped.disposed).toBe(true)
    mapped.dispose()
    expect(cuMemUnmap(address as CUdeviceptr, unit)).toBe(0)
    range.dispose()
  },
)

test('a mapping is unmapped even if waiting for its work fails', () => {
  using physical = PhysicalMemory.create(device, unit)
  using range = AddressRange.reserve(unit)
  const mapped = range.map(physical)
  fail('cuCtxSynchronize')
  expect(thrownBy(() => mapped.disposeSync())).toMatchObject({ api: 'cuCtxSynchronize' })
  expect(range.mappedBytes).toBe(0)
  range.map(physical).dispose()
})

test('a mapping disposed in the background rejects if waiting for its work fails, and is still unmapped', async () => {
  using physical = PhysicalMemory.create(device, unit)
  using range = AddressRange.reserve(unit)
  const mapped = range.map(physical)
  fail('cuCtxSynchronize')
  await expect(mapped[Symbol.asyncDispose]()).rejects.toMatchObject({ api: 'cuCtxSynchronize' })
  expect(range.mappedBytes).toBe(0)
  range.map(physical).dispose()
})

test('memory retained from an address is released if it does not match the request', () => {
  using physical = PhysicalMemory.create(device, unit)
  using range = AddressRange.reserve(unit)
  using mapped = range.map(physical)
  const before = calls('cuMemRelease')
  fail('cuMemGetAllocationPropertiesFromHandle')
  expect(thrownBy(() => PhysicalMemory.retain(device, mapped.address, unit))).toMatchObject({
    api: 'cuMemGetAllocationPropertiesFromHandle',
  })
  expect(() => PhysicalMemory.retain(device, mapped.address, unit + 1)).toThrow(RangeError)
  expect(() => PhysicalMemory.retain('host', mapped.address, unit)).toThrow(RangeError)
  expect(calls('cuMemRelease') - before).toBe(3)
})

test.each([
  ['cuMemCreate', () => PhysicalMemory.create(device, unit)],
  ['cuMemAddressReserve', () => AddressRange.reserve(unit)],
  ['cuMulticastCreate', () => MulticastObject.create({ deviceCount: 1, byteLength: unit })],
  ['cuMemPoolCreate', () => MemoryPool.create(device)],
])('a failed creation in %s leaves nothing behind', (api, make) => {
  fail(api, outOfMemory)
  expect(thrownBy(make)).toMatchObject({ api, status: outOfMemory })
  make().dispose()
})

test.each([
  ['cuMemRelease', () => PhysicalMemory.create(device, unit)],
  ['cuMemAddressFree', () => AddressRange.reserve(unit)],
  ['cuMemRelease', () => MulticastObject.create({ deviceCount: 1, byteLength: unit }).addDevice(device)],
  ['cuMemPoolDestroy', () => MemoryPool.create(device)],
])('a dispose() that fails in %s releases the context, and is not repeated', (api, make) => {
  const object = make()
  const handle = 'handle' in object ? object.handle : 0n
  const address = 'address' in object ? object.address : 0n
  fail(api)
  expect(thrownBy(() => object.dispose())).toMatchObject({ api, status: invalidValue })
  expect(object.disposed).toBe(true)
  const before = calls(api)
  object.dispose()
  expect(calls(api)).toBe(before)
  if (api === 'cuMemRelease') cuMemRelease(handle as never)
  if (api === 'cuMemAddressFree') cuMemAddressFree(address as CUdeviceptr, unit)
})

test('a device that cannot be added is not counted, and a failed bind leaves the memory unbound', () => {
  using object = MulticastObject.create({ deviceCount: 1, byteLength: unit })
  using physical = PhysicalMemory.create(device, unit)
  fail('cuMulticastAddDevice')
  expect(thrownBy(() => object.addDevice(device))).toMatchObject({ api: 'cuMulticastAddDevice' })
  expect(object.deviceOrdinals).toEqual([])
  object.addDevice(device)
  fail('cuMulticastBindMem')
  expect(thrownBy(() => object.bindMemorySync(physical))).toMatchObject({ api: 'cuMulticastBindMem' })
  object.bindMemorySync(physical)
  fail('cuMulticastUnbind')
  expect(thrownBy(() => object.unbind(device))).toMatchObject({ api: 'cuMulticastUnbind' })
  object.unbind(device)
})

test('a failed export or import leaks no descriptor', () => {
  using physical = PhysicalMemory.create(device, unit, { handleTypes: 'posix-fd' })
  const before = openDescriptors()
  fail('cuMemExportToShareableHandle')
  expect(thrownBy(() => physical.export())).toMatchObject({ api: 'cuMemExportToShareableHandle' })
  expect(openDescriptors()).toBe(before)
  const handle = physical.export()
  fail('cuMemImportFromShareableHandle')
  expect(thrownBy(() => PhysicalMemory.import(device, handle))).toMatchObject({
    api: 'cuMemImportFromShareableHandle',
  })
  handle.dispose()
  expect(openDescriptors()).toBe(before)
})

test('dispose() of many buffers frees each, reports each failed free, and leaves no records in the event loop', async () => {
  const warnings: string[] = []
  const onWarning = ({ message }: Error): void => void warnings.push(message)
  process.on('warning', onWarning)
  const buffers = Array.from({ length: 700 }, () => DeviceBuffer.allocate(device, 'u8', 4096))
  const addresses = buffers.map(({ address }) => address as CUdeviceptr)
  const before = calls('cuMemFree')
  fail('cuMemFree', invalidValue, 3)
  for (const buffer of buffers) buffer.dispose()
  await vi.waitFor(() => expect(warnings).toHaveLength(3), { timeout: 60_000 })
  process.off('warning', onWarning)
  expect(calls('cuMemFree') - before).toBe(700)
  for (const warning of warnings)
    expect(warning).toContain('A DeviceBuffer: what it held could not be freed: cuMemFree')
  // The shim prevented the first three frees.
  expect(used()).toBe(3 * 4096)
  for (const address of addresses.slice(0, 3)) expect(cuMemFree(address)).toBe(0)
})

test('dispose() in a loop that never yields to the event loop retains nothing', () => {
  const heap = (): number => {
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const loop = (count: number): void => {
    for (let i = 0; i < count; i += 1) DeviceBuffer.allocate(device, 'u8', 256).dispose()
    finishReleasesSync()
  }
  loop(2000)
  const before = heap()
  loop(30_000)
  expect(heap() - before).toBeLessThan(2_000_000)
})

test('a failed pool allocation leaves no memory behind', async () => {
  using pool = MemoryPool.create(device)
  using stream = device.createStream()
  fail('cuMemAllocFromPoolAsync', outOfMemory)
  expect(thrownBy(() => pool.allocate(stream, 'u8', 100))).toMatchObject({ status: outOfMemory })
  pool.allocate(stream, 'u8', 100).dispose()
  await device.synchronize()
})
