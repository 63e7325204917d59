import { ftruncateSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { recordedAt, told } from './support/told.js'

const { Device, DeviceBuffer, Event, MemoryPool, Module, PhysicalMemory } = await import('@shoal/driver')
const { ExternalMemory } = await import('@shoal/driver/external')
const { setCoreDumpSetting } = await import('@shoal/driver/diagnostics')
const { CudaArray, TextureObject } = await import('@shoal/driver/texture')

const ptx = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n'
const device = Device.get(0)
const stream = device.createStream()
const module = Module.loadSync(device, ptx)
const kernel = module.kernel('nothing', [])
const buffer = DeviceBuffer.zeros(device, 'u32', 16)
const event = Event.create(device)
const pool = MemoryPool.create(device)
const array = CudaArray.create(device, { width: 4, height: 4, format: 'f32' })
const unit = device.allocationGranularity()

afterAll(() => {
  for (const each of [stream, module, buffer, event, pool, array]) each.dispose()
  device.dispose()
})

test('cuMemCreate receives exactly the requested properties', () => {
  for (const [options, handleTypes, allocFlags] of [
    [{}, 0, [0, 0, 0, 0]],
    [{ compressible: false, gpuDirectRdma: false, tilePool: false }, 0, [0, 0, 0, 0]],
    [{ handleTypes: 'posix-fd' }, 1, [0, 0, 0, 0]],
    [{ compressible: true }, 0, [1, 0, 0, 0]],
    [{ gpuDirectRdma: true }, 0, [0, 1, 0, 0]],
    [{ tilePool: true }, 0, [0, 0, 1, 0]],
  ] as const) {
    const given = told('cuMemCreate', () => PhysicalMemory.create(device, unit, options))
    // Pinned memory, handle types, location of a device, and its ordinal.
    expect(given.ints(2, 4)).toEqual([1, handleTypes, 1, 0])
    expect([...new Uint8Array(given.at(2).buffer, given.at(2).byteOffset + 24, 4)]).toEqual(allocFlags)
    expect([given.size(1), given.size(3)]).toEqual([unit, 0])
  }
})

test('memory pool creation passes handle types, location and maximum size', () => {
  for (const [options, handleTypes, largest] of [
    [{}, 0, 0],
    [{ handleTypes: 'posix-fd' }, 1, 0],
    [{ maximumBytes: 2 * unit }, 0, 2 * unit],
  ] as const) {
    const given = told('cuMemPoolCreate', () => MemoryPool.create(device, options))
    expect([given.ints(1, 4), given.sizes(1, 1, 24)]).toEqual([[1, handleTypes, 1, 0], [largest]])
  }
  const settings = [
    ['releaseThreshold', 4, () => Object.assign(pool, { releaseThreshold: 12345 }), 12345],
    ['followEventDependencies', 1, () => pool.setReuse({ followEventDependencies: false }), 0],
    ['opportunistic', 2, () => pool.setReuse({ opportunistic: true }), 1],
    ['internalDependencies', 3, () => pool.setReuse({ internalDependencies: true }), 1],
  ] as const
  for (const [name, code, set, value] of settings) {
    const given = told('cuMemPoolSetAttribute', () => void set())
    expect([name, given.int(1), given.at(2).getUint32(0, true)]).toEqual([name, code, value])
  }
})

test('stream memory operations pass their codes', () => {
  const [four, eight] = [buffer.slice(0, 1), buffer.slice(2, 4)]
  for (const [operation, code, word, value, flag] of [
    [{ operation: 'write', memory: four, value: 7 }, 2, four, 7, 0],
    [{ operation: 'write', memory: eight, value: 8n }, 5, eight, 8, 0],
    [{ operation: 'wait', memory: four, value: 0 }, 1, four, 0, 0],
    [{ operation: 'wait', memory: four, value: 7, condition: 'eq' }, 1, four, 7, 1],
    [{ operation: 'wait', memory: four, value: 1, condition: 'and' }, 1, four, 1, 2],
    [{ operation: 'wait', memory: eight, value: 1, condition: 'nor' }, 4, eight, 1, 3],
  ] as const) {
    const given = told('cuStreamBatchMemOp', () => void stream.memoryOperations([operation]))
    expect([given.int(1), given.ints(2, 1), given.sizes(2, 2, 8), given.ints(2, 1, 24)]).toEqual([
      1,
      [code],
      [Number(word.address), value],
      [flag],
    ])
  }
})

test('array creation passes the requested flags', () => {
  for (const [options, bits] of [
    [{}, 0],
    [{ layers: 2 }, 1],
    [{ surface: true }, 2],
    [{ cubemap: true }, 4],
    [{ gather: true }, 8],
    [{ colorAttachment: true }, 0x20],
    [{ sparse: true }, 0x40],
    [{ deferredMapping: true }, 0x80],
    [{ surface: false, cubemap: false, gather: false, sparse: false, deferredMapping: false }, 0],
  ] as const) {
    const given = told('cuArray3DCreate', () =>
      CudaArray.create(device, { width: 6, height: 6, format: 'f32', ...options }),
    )
    const depth = 'layers' in options ? 2 : 'cubemap' in options && options.cubemap ? 6 : 0
    // 0x20 is the float format.
    expect([given.sizes(1, 3), given.ints(1, 3, 24)]).toEqual([
      [6, 6, depth],
      [0x20, 1, bits],
    ])
  }
})

test('texture creation passes the requested description', () => {
  const clamped = [1, 1, 1]
  for (const [options, modes, filter, bits] of [
    [{}, clamped, 0, 0],
    [{ addressMode: 'border' }, [3, 3], 0, 0],
    [{ addressMode: ['wrap', 'mirror'], normalizedCoordinates: true }, [0, 2], 0, 2],
    [{ filterMode: 'linear' }, clamped, 1, 0],
    [{ normalizedCoordinates: true }, clamped, 0, 2],
    [{ srgb: true }, clamped, 0, 0x10],
    [{ seamlessCubemap: true }, clamped, 0, 0x40],
    [{ trilinearOptimization: false }, clamped, 0, 0x20],
    [{ srgb: false, seamlessCubemap: false, trilinearOptimization: true }, clamped, 0, 0],
  ] as const) {
    const given = told('cuTexObjectCreate', () => TextureObject.create(array, options))
    expect([options, given.ints(2, modes.length), given.ints(2, 2, 12)]).toEqual([options, modes, [filter, bits]])
  }
  const given = told('cuTexObjectCreate', () =>
    TextureObject.create(array, {
      maxAnisotropy: 5,
      mipmapFilterMode: 'linear',
      mipmapLevelBias: 0.5,
      mipmapLevelClamp: [1, 2],
      borderColor: [1, 2, 3, 4],
      addressMode: 'border',
    }),
  )
  const floats = (from: number, count: number) =>
    Array.from({ length: count }, (_, at) => given.at(2).getFloat32(from + 4 * at, true))
  expect([given.ints(2, 2, 20), floats(28, 3), floats(40, 4)]).toEqual([
    [5, 1],
    [0.5, 1, 2],
    [1, 2, 3, 4],
  ])
})

test('external memory import passes the dedicated flag if requested', () => {
  const memory = (dedicated?: boolean) => {
    const handle = openSync(join(scratchFolder(), 'external'), 'w+')
    ftruncateSync(handle, 4096)
    return ExternalMemory.import(device, { type: 'opaque-fd', handle, byteLength: 4096, dedicated })
  }
  for (const [dedicated, flag] of [
    [undefined, 0],
    [false, 0],
    [true, 1],
  ] as const) {
    const given = told('cuImportExternalMemory', () => memory(dedicated))
    expect([given.ints(1, 1), given.sizes(1, 1, 24), given.ints(1, 1, 32)]).toEqual([[1], [4096], [flag]])
  }
  using imported = memory()
  const given = told('cuExternalMemoryGetMappedBuffer', () => imported.map('u32', { byteOffset: 64, length: 5 }))
  expect([given.sizes(2, 2), given.ints(2, 1, 16)]).toEqual([[64, 20], [0]])
})

test('core dump settings pass their numbers, values and sizes', () => {
  for (const [name, value, code, bytes, size] of [
    ['enableOnException', true, 1, 1, 1],
    ['triggerHost', true, 2, 1, 1],
    ['lightweight', false, 3, 0, 1],
    ['enableUserTrigger', false, 4, 0, 1],
    ['generationFlags', 5, 7, 5, 4],
  ] as const) {
    const given = told(
      'cuCoredumpSetAttributeGlobal',
      () => void setCoreDumpSetting('process', name as 'lightweight', value as never),
    )
    expect([name, given.int(0), given.at(1).getUint8(0), given.sizes(2, 1)]).toEqual([name, code, bytes, [size]])
  }
})

test('a launch passes its attributes, each with its number and value', () => {
  const launched = (attributes: object) =>
    told('cuLaunchKernelEx', () => void kernel.with(attributes).launch({ grid: 2, block: 32, stream }))
  for (const [attributes, code, values] of [
    [{ cooperative: true }, 2, [1]],
    [{ clusterDimension: 2 }, 4, [2, 1, 1]],
    [{ clusterSchedulingPolicy: 'default' }, 5, [0]],
    [{ clusterSchedulingPolicy: 'spread' }, 5, [1]],
    [{ clusterSchedulingPolicy: 'load-balancing' }, 5, [2]],
    [{ programmaticStreamSerialization: true }, 6, [1]],
    [{ priority: -1 }, 8, [-1]],
    [{ memorySynchronizationDomainMap: { default: 1, remote: 2 } }, 9, [0x0201]],
    [{ memorySynchronizationDomain: 'default' }, 10, [0]],
    [{ memorySynchronizationDomain: 'remote' }, 10, [1]],
    [{ preferredClusterDimension: 2 }, 11, [2, 1, 1]],
    [{ sharedMemoryCarveout: 50 }, 14, [50]],
    [{ nvlinkUtilCentricScheduling: true }, 16, [1]],
  ] as const) {
    const given = launched(attributes)
    // Grid and block, shared memory, the stream, the attributes and their number.
    expect([attributes, given.ints(0, 7)]).toEqual([attributes, [2, 1, 1, 32, 1, 1, 0]])
    expect([attributes, given.ints(0, 1, 48)]).toEqual([attributes, [1]])
    const list = recordedAt(given.at(0).getBigUint64(40, true))
    expect([attributes, list(0), values.map((_, at) => list(8 + 4 * at))]).toEqual([attributes, code, [...values]])
  }
})

test('a launch passes its access policy window and its events, each with its number and values', () => {
  const window = { memory: buffer, hitRatio: 0.5 }
  const { handle } = event
  const halves = [Number(BigInt.asIntN(32, handle)), Number(handle >> 32n)]
  const address = [Number(BigInt.asIntN(32, buffer.address)), Number(buffer.address >> 32n)]
  // The bits of 0.5.
  const head = [...address, 64, 0, 0x3f00_0000]
  for (const [attributes, code, values] of [
    [{ accessPolicyWindow: { ...window, hit: 'normal', miss: 'normal' } }, 1, [...head, 0, 0]],
    [{ accessPolicyWindow: { ...window, hit: 'streaming', miss: 'streaming' } }, 1, [...head, 1, 1]],
    [{ accessPolicyWindow: { ...window, hit: 'persisting', miss: 'normal' } }, 1, [...head, 2, 0]],
    [{ programmaticEvent: { event } }, 7, [...halves, 0, 0]],
    [{ programmaticEvent: { event, triggerAtBlockStart: true } }, 7, [...halves, 0, 1]],
    [{ launchCompletionEvent: event }, 12, halves],
  ] as const) {
    const given = told('cuLaunchKernelEx', () => void kernel.with(attributes).launch({ grid: 1, block: 1, stream }))
    const list = recordedAt(given.at(0).getBigUint64(40, true))
    expect([code, given.ints(0, 1, 48)]).toEqual([code, [1]])
    expect([list(0), values.map((_, at) => list(8 + 4 * at))]).toEqual([code, [...values]])
  }
})
