import { afterAll, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const {
  AddressRange,
  allocationGranularity,
  CachingPool,
  Device,
  DeviceBuffer,
  GrowableBuffer,
  GrowableRange,
  ManagedBuffer,
  MemoryPool,
  MulticastObject,
  maxActiveBlocks,
  multicastGranularity,
  PhysicalMemory,
  PinnedBuffer,
  Stream,
} = await import('@shoal/driver/shared')
const { CreatedContext, DeviceResource, GreenContext } = await import('@shoal/driver/context')
const { ProcessCheckpoint, readLogs, setCoreDumpSetting } = await import('@shoal/driver/diagnostics')
const { Graph, UserObject } = await import('@shoal/driver/graph')
const { Library } = await import('@shoal/driver/library')
const { PitchedBuffer } = await import('@shoal/driver/memory')
const { CudaArray, MipmappedArray, mapArrays, TensorMap, TextureObject } = await import('@shoal/driver/texture')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const { primaryContext } = device
const unit = allocationGranularity(device)
const code = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing(.param .u32 a) { ret; }\n'
const library = Library.loadSync(device, code)
const kernel = library.kernel('nothing', ['u32'])
const prepared = kernel.prepare({ grid: 1, block: 1 }, 1)
const buffer = DeviceBuffer.zeros(device, 'f32', 64 * 64)
const pinned = PinnedBuffer.allocate(device, 'u8', 100)
const rows = PitchedBuffer.zeros(device, 'f32', { width: 5, height: 6, depth: 7 })
const growable = GrowableBuffer.reserve(device, 'f32', { maximumLength: 100 })
const range = GrowableRange.reserve(device, { maximumBytes: unit })
const pool = MemoryPool.create(device)
const caching = CachingPool.create(device)
const array = CudaArray.create(device, { width: 5, height: 6, depth: 7, format: 'f32' })
const sparse = CudaArray.create(device, { width: 200, height: 300, layers: 3, format: 'f32', sparse: true })
const mipmapped = MipmappedArray.create(device, { width: 16, height: 16, format: 'f32', levels: 3 })
const texels = TextureObject.create(array)
const graph = Graph.create(device)
const object = UserObject.create(() => undefined)
const multicast = MulticastObject.create({ deviceCount: 1, byteLength: unit })
const green = GreenContext.create(DeviceResource.of(device).split(2, { groups: 1 }).groups)
const { multiprocessors } = DeviceResource.of(device)
const { least, greatest } = device.streamPriorityRange

const all = [library, buffer, pinned, rows, growable, range, pool, caching, texels, array, sparse, mipmapped]
afterAll(() => {
  for (const each of [...all, graph, object, multicast, green]) each.dispose()
  device.dispose()
})

const any = 2 ** 53 - 1
const int = 2 ** 31 - 1
const pictures = { dimensions: [16, 4, 4, 4], lowerCorner: [-1, -1], upperCorner: [0, 0] }
const wide = { dimensions: [16, 4, 4], channelsPerPixel: 16, pixelsPerColumn: 32 }

// The function and parameter, the limits, and a call with a value.
test.each<[string, string, number, number, (value: never) => unknown]>([
  ['DeviceBuffer.allocate', 'length', 0, Math.floor(any / 8), (n) => DeviceBuffer.allocate(device, 'f64', n)],
  [
    'DeviceBuffer.allocateOn',
    'length',
    0,
    Math.floor(any / 2),
    (n) => DeviceBuffer.allocateOn(device.defaultStream, 'u16', n),
  ],
  ['DeviceBuffer.slice', 'start', -4096, 4096, (n) => buffer.slice(n)],
  ['DeviceBuffer.slice', 'end', -4096, 4096, (n) => buffer.slice(0, n)],
  ['DeviceBuffer.view', 'byteOffset', 0, 16384, (n) => DeviceBuffer.view(device, buffer, 'u8', { byteOffset: n })],
  [
    'DeviceBuffer.view',
    'length',
    0,
    16380,
    (n) => DeviceBuffer.view(device, buffer, 'u8', { byteOffset: 4, length: n }),
  ],
  ['ManagedBuffer.allocate', 'length', 1, 2 ** 30, (n) => ManagedBuffer.allocate(device, 'f32', n)],
  ['PinnedBuffer.allocate', 'length', 0, Math.floor(any / 4), (n) => PinnedBuffer.allocate(device, 'f32', n)],
  [
    'GrowableBuffer.reserve',
    'length',
    0,
    9,
    (n) => GrowableBuffer.reserve(device, 'f32', { maximumLength: 9, length: n }),
  ],
  [
    'GrowableBuffer.reserve',
    'stepBytes',
    1,
    any,
    (n) => GrowableBuffer.reserve(device, 'f32', { maximumLength: 9, stepBytes: n }),
  ],
  ['GrowableBuffer.resize', 'length', 0, growable.maximumLength, (n) => growable.resize(n)],
  ['GrowableRange.reserve', 'maximumBytes', 1, 2 ** 47, (n) => GrowableRange.reserve(device, { maximumBytes: n })],
  [
    'GrowableRange.reserve',
    'stepBytes',
    1,
    any,
    (n) => GrowableRange.reserve(device, { maximumBytes: 9, stepBytes: n }),
  ],
  ['GrowableRange.resize', 'byteLength', 0, range.maximumBytes, (n) => range.resize(n)],
  ['AddressRange.reserve', 'alignment', 0, 2 ** 47, (n) => AddressRange.reserve(unit, { alignment: n })],
  ['PhysicalMemory.create', 'byteLength', 1, any, (n) => PhysicalMemory.create(device, n)],
  ['MemoryPool.create', 'maximumBytes', 0, any, (n) => MemoryPool.create(device, { maximumBytes: n })],
  ['MemoryPool.trimTo', 'bytesToKeep', 0, any, (n) => pool.trimTo(n)],
  ['CachingPool.create', 'maximumBytes', 0, any, (n) => CachingPool.create(device, { maximumBytes: n })],
  ['CachingPool.trimSync', 'bytesToKeep', 0, any, (n) => caching.trimSync(n)],
  [
    'MulticastObject.create',
    'deviceCount',
    1,
    0xffff_ffff,
    (n) => MulticastObject.create({ deviceCount: n, byteLength: unit }),
  ],
  ['MulticastObject.create', 'byteLength', 1, any, (n) => MulticastObject.create({ deviceCount: 1, byteLength: n })],
  [
    'multicastGranularity',
    'flags',
    0,
    any,
    (n) => multicastGranularity({ deviceCount: 1, byteLength: unit, flags: n }),
  ],
  ['MulticastObject.unbind', 'offset', 0, unit - 1, (n) => multicast.unbind(device, { offset: n })],
  ['MulticastObject.unbind', 'byteLength', 1, unit, (n) => multicast.unbind(device, { byteLength: n })],
  ['Graph.allocate', 'length', 1, Math.floor(any / 4), (n) => graph.allocate('f32', n)],
  ['Graph.addConditional', 'size', 1, 2, (n) => graph.addConditional({ type: 'if', size: n })],
  ['Graph.addConditional', 'size', 1, 1, (n) => graph.addConditional({ type: 'while', size: n })],
  [
    'Graph.addConditional',
    'defaultValue',
    0,
    2 ** 32 - 1,
    (n) => graph.addConditional({ type: 'if', defaultValue: n }),
  ],
  ['UserObject.retainBy', 'count', 1, int, (n) => object.retainBy(graph, n)],
  ['UserObject.releaseBy', 'count', 1, int, (n) => object.releaseBy(graph, n)],
  ['DeviceResource.split', 'multiprocessors', 1, multiprocessors, (n) => DeviceResource.of(device).split(n)],
  ['DeviceResource.split', 'groups', 1, multiprocessors, (n) => DeviceResource.of(device).split(2, { groups: n })],
  ['GreenContext.createStream', 'priority', greatest, least, (n) => green.createStream({ priority: n })],
  ['Stream.create', 'priority', greatest, least, (n) => Stream.create(device, { priority: n })],
  ['Context.setLimit', 'value', 0, any, (n) => primaryContext.setLimit('STACK_SIZE', n)],
  ['CreatedContext.create', 'execAffinity', 1, int, (n) => CreatedContext.create(device, { execAffinity: n })],
  ['Device.get', 'ordinal', 0, 1, (n) => Device.get(n)],
  ['PitchedBuffer.allocate', 'height', 1, any, (n) => PitchedBuffer.allocate(device, 'f32', { width: 3, height: n })],
  [
    'PitchedBuffer.allocate',
    'depth',
    1,
    any,
    (n) => PitchedBuffer.allocate(device, 'f32', { width: 3, height: 3, depth: n }),
  ],
  ['PitchedBuffer.row', 'y', 0, 5, (n) => rows.row(n)],
  ['PitchedBuffer.row', 'z', 0, 6, (n) => rows.row(0, n)],
  ['PitchedBuffer.region', 'x', 0, 4, (n) => rows.region({ x: n, width: 1, height: 1, depth: 1 })],
  ['PitchedBuffer.region', 'y', 0, 5, (n) => rows.region({ y: n, width: 1, height: 1, depth: 1 })],
  ['PitchedBuffer.region', 'z', 0, 6, (n) => rows.region({ z: n, width: 1, height: 1, depth: 1 })],
  ['PitchedBuffer.region', 'width', 1, 4, (n) => rows.region({ x: 1, width: n, height: 1, depth: 1 })],
  ['PitchedBuffer.region', 'height', 1, 4, (n) => rows.region({ y: 2, width: 1, height: n, depth: 1 })],
  ['PitchedBuffer.region', 'depth', 1, 4, (n) => rows.region({ z: 3, width: 1, height: 1, depth: n })],
  [
    'Library.setKernelAttribute',
    'value',
    -int - 1,
    int,
    (n) => library.setKernelAttribute('nothing', 'PREFERRED_SHARED_MEMORY_CARVEOUT', n),
  ],
  ['Kernel.setAttribute', 'value', -int - 1, int, (n) => kernel.setAttribute('PREFERRED_SHARED_MEMORY_CARVEOUT', n)],
  ['maxActiveBlocks', 'blockSize', 1, 1024, (n) => maxActiveBlocks(device, kernel, n)],
  ['Kernel.availableSharedMemory', 'blockCount', 1, int, (n) => kernel.availableSharedMemory(n, 32)],
  ['Kernel.availableSharedMemory', 'blockSize', 1, 1024, (n) => kernel.availableSharedMemory(1, n)],
  ['Kernel.potentialBlockSize', 'blockSizeLimit', 1, any, (n) => kernel.potentialBlockSize({ blockSizeLimit: n })],
  ['Kernel.launch', 'grid', 1, int, (n) => kernel.launch({ grid: n, block: 1 }, 1)],
  ['Kernel.launch', 'grid[1]', 1, 65535, (n) => kernel.launch({ grid: [1, n], block: 1 }, 1)],
  ['Kernel.launch', 'grid[2]', 1, 65535, (n) => kernel.launch({ grid: [1, 1, n], block: 1 }, 1)],
  ['Kernel.launch', 'block', 1, 1024, (n) => kernel.launch({ grid: 1, block: n }, 1)],
  ['Kernel.launch', 'block[1]', 1, 1024, (n) => kernel.launch({ grid: 1, block: [1, n] }, 1)],
  ['Kernel.launch', 'block[2]', 1, 64, (n) => kernel.launch({ grid: 1, block: [1, 1, n] }, 1)],
  ['Kernel.launch', 'sharedMemory', 0, int, (n) => kernel.launch({ grid: 1, block: 1, sharedMemory: n }, 1)],
  ['PreparedLaunch.set', 'index', 0, 0, (n) => prepared.set(n, 1)],
  ['Kernel.with', 'priority', -int - 1, int, (n) => kernel.with({ priority: n })],
  ['Kernel.with', 'sharedMemoryCarveout', -1, 100, (n) => kernel.with({ sharedMemoryCarveout: n })],
  [
    'Kernel.with',
    'memorySynchronizationDomainMap.default',
    0,
    255,
    (n) => kernel.with({ memorySynchronizationDomainMap: { default: n, remote: 1 } }),
  ],
  [
    'Kernel.with',
    'memorySynchronizationDomainMap.remote',
    0,
    255,
    (n) => kernel.with({ memorySynchronizationDomainMap: { default: 0, remote: n } }),
  ],
  ['Kernel.with', 'raw[0].id', 0, int, (n) => kernel.with({ raw: [{ id: n, value: new Uint8Array(4) }] })],
  ['CudaArray.create', 'width', 1, int, (n) => CudaArray.create(device, { width: n, format: 'f32' })],
  ['CudaArray.create', 'height', 1, int, (n) => CudaArray.create(device, { width: 1, height: n, format: 'f32' })],
  ['CudaArray.create', 'channels', 1, 4, (n) => CudaArray.create(device, { width: 1, channels: n, format: 'f32' })],
  ['CudaArray.plane', 'index', 0, 0xffff_ffff, (n) => array.plane(n)],
  [
    'MipmappedArray.create',
    'levels',
    1,
    5,
    (n) => MipmappedArray.create(device, { width: 16, height: 9, format: 'f32', levels: n }),
  ],
  ['MipmappedArray.level', 'index', 0, 2, (n) => mipmapped.level(n)],
  ['mapArrays', 'mappings[0].layer', 0, 2, (n) => mapArrays([{ array: sparse, layer: n }])],
  ['mapArrays', 'mappings[0].level', 0, 0, (n) => mapArrays([{ array: sparse, level: n }])],
  ['TextureObject.create', 'maxAnisotropy', 0, 16, (n) => TextureObject.create(array, { maxAnisotropy: n })],
  [
    'TensorMap.im2col',
    'channelsPerPixel',
    1,
    256,
    (n) => TensorMap.im2col(buffer, { ...pictures, channelsPerPixel: n, pixelsPerColumn: 32 }),
  ],
  [
    'TensorMap.im2col',
    'pixelsPerColumn',
    1,
    1024,
    (n) => TensorMap.im2col(buffer, { ...pictures, channelsPerPixel: 16, pixelsPerColumn: n }),
  ],
  [
    'TensorMap.im2colWide',
    'lowerCornerWidth',
    -32768,
    32767,
    (n) => TensorMap.im2colWide(buffer, { ...wide, lowerCornerWidth: n, upperCornerWidth: 0 }),
  ],
  [
    'TensorMap.im2colWide',
    'upperCornerWidth',
    -32768,
    32767,
    (n) => TensorMap.im2colWide(buffer, { ...wide, lowerCornerWidth: 0, upperCornerWidth: n }),
  ],
  ['TensorMap.tiled', 'box[0]', 1, 256, (n) => TensorMap.tiled(buffer, { dimensions: [64, 64], box: [n, 8] })],
  [
    'TensorMap.tiled',
    'dimensions[0]',
    1,
    2 ** 32,
    (n) => TensorMap.tiled(buffer, { dimensions: [n, 64], box: [32, 8] }),
  ],
  [
    'TensorMap.tiled',
    'elementStrides[0]',
    1,
    8,
    (n) => TensorMap.tiled(buffer, { dimensions: [64, 64], box: [32, 8], elementStrides: [n, 1] }),
  ],
  ['readLogs', 'since', 0, 0xffff_ffff, (n) => readLogs({ since: n })],
  ['setCoreDumpSetting', 'value', 0, 0xffff_ffff, (n) => setCoreDumpSetting('process', 'generationFlags', n)],
  ['new ProcessCheckpoint', 'pid', 1, int, (n) => new ProcessCheckpoint(n)],
  ['Library.loadSync', 'maxRegisters', 1, 255, (n) => Library.loadSync(device, code, { maxRegisters: n })],
  ['Library.loadSync', 'optimizationLevel', 0, 4, (n) => Library.loadSync(device, code, { optimizationLevel: n })],
])('%s: %s must be an integer from %d to %d', (api, parameter, lowest, highest, use) => {
  const limits = `${lowest} to ${highest === any ? '2^53 - 1' : highest}`
  for (const value of [0.5, Number.NaN]) {
    expect(() => use(value as never)).toThrow(TypeError)
    expect(() => use(value as never)).toThrow(`${api}: ${parameter} must be an integer from ${limits}, not ${value}`)
  }
  for (const value of highest === any ? [lowest - 1] : [lowest - 1, highest + 1]) {
    expect(() => use(value as never)).toThrow(RangeError)
    expect(() => use(value as never)).toThrow(`${api}: ${parameter} must be an integer from ${limits}, not ${value}`)
  }
})
