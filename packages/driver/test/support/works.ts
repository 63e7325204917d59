/** Operations of a device, for tests that let each of their calls fail. A shim runs in front of the software device. */
import { ftruncateSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile, shimEnvironment } from './shim.js'

Object.assign(process.env, shimEnvironment(compile('everyCallShim')), { SHOAL_SIM_DEVICES: '2' })
const {
  AddressRange,
  allocationGranularity,
  CachingPool,
  Device,
  DeviceBuffer,
  Event,
  elapsedMs,
  GrowableBuffer,
  GrowableRange,
  ipcEventHandle,
  ipcMemoryHandle,
  ManagedBuffer,
  MemoryPool,
  Module,
  MulticastObject,
  PhysicalMemory,
  PinnedBuffer,
  pointerAttribute,
  pointerAttributes,
  pointerInfo,
  prepareCopies,
  RegisteredBuffer,
  rangeAttribute,
  rangeAttributes,
  Stream,
  setPointerAttribute,
} = await import('@shoal/driver')
const {
  copyNode,
  emptyNode,
  eventRecordNode,
  eventWaitNode,
  fillNode,
  Graph,
  graphMemoryUsage,
  hostNode,
  kernelNode,
  memoryOperationsNode,
  nodeParameters,
  resetGraphMemoryHigh,
  signalSemaphoresNode,
  trimGraphMemory,
  UserObject,
  waitSemaphoresNode,
} = await import('@shoal/driver/graph')
const { CreatedContext, DeviceResource, GreenContext } = await import('@shoal/driver/context')
const { ExternalMemory, ExternalSemaphore, signalSemaphores, waitSemaphores } = await import('@shoal/driver/external')
const { Library, Linker } = await import('@shoal/driver/library')
const { PitchedBuffer, prefetchBatch, prepareCopies3D } = await import('@shoal/driver/memory')
const { CudaArray, MipmappedArray, mapArrays, SurfaceObject, TensorMap, TextureObject } = await import(
  '@shoal/driver/texture'
)
const { fromDLPack, toDLPack } = await import('@shoal/driver/dlpack')
const { coreDumpSetting, logPosition, onLog, profile, readLogs, setCoreDumpSetting } = await import(
  '@shoal/driver/diagnostics'
)

export const device = Device.get(0)
export const second = Device.get(1)
const unit = allocationGranularity(device)
const ptx = `.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 number;
.visible .entry nothing(.param .u64 at) { ret; }
`

/** Exports memory like another library. */
function exported(byteLength: number): number {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-exported-'))
  const descriptor = openSync(join(folder, 'memory'), 'w+')
  ftruncateSync(descriptor, byteLength)
  rmSync(folder, { recursive: true })
  return descriptor
}

/** Operations of a device, each with separate objects. */
export const works: { readonly [what: string]: () => unknown } = {
  'a stream': () => {
    using stream = device.createStream({ nonBlocking: true, priority: 0 })
    using other = Stream.create(device)
    using event = stream.record()
    other.waitEvent(event)
    stream.query()
    void [stream.id, stream.priority, stream.nonBlocking, stream.attributes]
    stream.copyAttributes(other)
    stream.synchronizeSync()
    event.query()
    event.synchronizeSync()
  },
  'waits for a stream and an event': async () => {
    using stream = device.createStream({ nonBlocking: true })
    using event = Event.create(device, { timing: true })
    using end = Event.create(device, { timing: true })
    stream.record(event)
    stream.record(end)
    await stream.synchronize()
    await end.synchronize()
    elapsedMs(event, end)
    await device.synchronize()
    device.synchronizeSync()
  },
  'a host function': async () => {
    using stream = device.createStream({ nonBlocking: true })
    await stream.hostFunction(() => undefined)
  },
  'copies from and to arrays': async () => {
    using buffer = DeviceBuffer.from(device, new Float32Array(16))
    using zeros = DeviceBuffer.zeros(device, 'f32', 16)
    zeros.copyFrom(new Float32Array(16))
    await zeros.copyTo(new Float32Array(16))
    zeros.copyFromSync(new Float32Array(16))
    zeros.copyFrom(buffer)
    zeros.toArraySync()
    await buffer.toArray()
  },
  fills: () => {
    using buffer = DeviceBuffer.allocate(device, 'u8', 16)
    buffer.fill(1)
    buffer.reinterpret('u16').fill(2)
    buffer.reinterpret('u32').fillSync(3)
    buffer.reinterpret('f64').fill(3)
  },
  'page-locked memory': async () => {
    using pinned = PinnedBuffer.allocate(device, 'u8', 100, { mapped: true })
    using buffer = DeviceBuffer.allocate(device, 'u8', 100)
    buffer.copyFrom(pinned)
    await buffer.copyTo(pinned)
    using registered = RegisteredBuffer.register(device, new ArrayBuffer(8192))
    void registered.byteLength
  },
  'copies between devices': async () => {
    using buffer = DeviceBuffer.zeros(device, 'u8', 100)
    using other = DeviceBuffer.zeros(second, 'u8', 100)
    other.copyFrom(buffer)
    await other.toArray()
    device.enablePeerAccess(second)
    device.disablePeerAccess(second)
  },
  'managed memory': async () => {
    using managed = ManagedBuffer.allocate(device, 'u8', 100)
    managed.advise('readMostly').unadvise('readMostly')
    using stream = device.createStream()
    managed.prefetch(device, { stream }).attachTo(stream)
    void managed.attributes
    prefetchBatch(device, [{ memory: managed, place: 'host' }], { stream })
    rangeAttribute(device, managed, 'READ_MOSTLY')
    rangeAttributes(device, managed, ['READ_MOSTLY', 'ACCESSED_BY'])
    await stream.synchronize()
  },
  'what an address is': () => {
    using buffer = DeviceBuffer.allocate(device, 'u8', 100)
    pointerInfo(device, buffer)
    pointerAttribute(device, buffer.address, 'MAPPED')
    pointerAttributes(device, buffer.address, ['MAPPED', 'CONTEXT'])
    setPointerAttribute(device, buffer.address, 'SYNC_MEMOPS', true)
  },
  pools: async () => {
    using pool = MemoryPool.create(device)
    using stream = device.createStream()
    using buffer = pool.allocate(stream, 'u8', 100)
    buffer.dispose()
    await stream.synchronize()
    pool.trimTo(0)
    void [
      device.memoryPool.handle,
      device.defaultMemoryPool.handle,
      pool.releaseThreshold,
      pool.reserved,
      pool.used,
      pool.reuse,
    ]
    pool.resetHighWaterMarks()
    pool.setReuse({ opportunistic: true })
    pool.getAccess(second)
    device.memoryPool.setCurrent()
  },
  'pools of host and managed memory': async () => {
    using stream = device.createStream()
    for (const options of [{ location: 'host' }, { managed: true }] as const) {
      using pool = MemoryPool.create(device, options)
      using buffer = pool.allocate(stream, 'u8', 100)
      buffer.fill(1, { stream })
      buffer.dispose()
    }
    await stream.synchronize()
  },
  'a caching pool': async () => {
    using pool = CachingPool.create(device)
    using stream = device.createStream()
    using other = device.createStream()
    pool.allocate(stream, 'u8', 100).dispose()
    pool.allocate(other, 'u8', 2 ** 20).dispose()
    await stream.synchronize()
    await pool.trim()
  },
  'memory with and without an address': async () => {
    using physical = PhysicalMemory.create(device, unit)
    using range = AddressRange.reserve(unit)
    using mapped = range.map(physical)
    mapped.setAccess(second, 'read')
    mapped.getAccess(second)
    using again = PhysicalMemory.retain(device, mapped.address, unit)
    void again.handle
    await mapped[Symbol.asyncDispose]()
  },
  'memory that grows': async () => {
    using growable = GrowableBuffer.reserve(device, 'u8', { maximumLength: 8 * unit, length: 10 })
    growable.resize(3 * unit)
    growable.resize(unit)
    using range = GrowableRange.reserve(device, { maximumBytes: 2 * unit })
    range.resize(unit)
    await range[Symbol.asyncDispose]()
  },
  'memory that is exported': () => {
    using physical = PhysicalMemory.create(device, unit, { handleTypes: 'posix-fd' })
    using handle = physical.export()
    using imported = PhysicalMemory.import(device, handle)
    void imported.handle
  },
  multicast: () => {
    using object = MulticastObject.create({ deviceCount: 1, byteLength: unit })
    object.addDevice(device)
    using physical = PhysicalMemory.create(device, unit)
    object.bindMemorySync(physical)
    object.unbind(device)
  },
  rows: async () => {
    using rows = PitchedBuffer.zeros(device, 'f32', { width: 3, height: 5 })
    rows.fill(1)
    rows.copyFrom(new Float32Array(15))
    rows.copyToSync(new Float32Array(15))
    await rows.toArray()
  },
  'a module': () => {
    using module = Module.loadSync(device, ptx)
    using memory = DeviceBuffer.zeros(device, 'u32', 1)
    const kernel = module.kernel('nothing', ['ptr'])
    kernel.launch({ grid: 1, block: 1 }, memory)
    kernel.prepare({ grid: 1, block: 1 }, memory).launch()
    kernel.maxActiveBlocks(32)
    kernel.availableSharedMemory(1, 32)
    kernel.potentialBlockSize()
    kernel.potentialClusterSize({ grid: 1, block: 1 })
    kernel.maxActiveClusters({ grid: 1, block: 1 })
    kernel.setCacheConfig('cache')
    void kernel.parameters
    module.global('number', 'u32').fillSync(1)
    void module.kernelNames
    kernel.attribute('NUM_REGS')
  },
  'a module that is loaded in the background': async () => {
    using module = await Module.load(device, ptx)
    void module.handle
  },
  'a library': async () => {
    using library = Library.loadSync(device, ptx)
    using memory = DeviceBuffer.zeros(device, 'u32', 1)
    library.kernel('nothing', ['ptr']).launch({ grid: 1, block: 1 }, memory)
    library.global('number', 'u32').fillSync(1)
    void [library.kernelNames, library.kernelCount, library.moduleHandle, library.parameters('nothing')]
    library.kernelAttribute('nothing', 'NUM_REGS')
    library.setKernelCacheConfig('nothing', 'cache')
    using other = await Library.load(device, ptx)
    void other.handle
  },
  'a linker': async () => {
    using linker = Linker.create(device)
    linker.add(ptx)
    await linker.complete()
  },
  'a linker that blocks': () => {
    using linker = Linker.create(device)
    linker.add(ptx)
    linker.completeSync()
  },
  'a graph': () => {
    using memory = DeviceBuffer.zeros(device, 'u32', 4)
    using module = Module.loadSync(device, ptx)
    using graph = Graph.create(device)
    const first = graph.add(fillNode(memory, 1))
    const last = graph.add(copyNode(memory.slice(0, 2), memory.slice(2, 4)), { dependencies: [first] })
    const kernel = graph.add(kernelNode(module.kernel('nothing', ['ptr']), { grid: 1, block: 1 }, memory))
    graph.add(emptyNode())
    graph.removeDependency(first, last)
    graph.addDependency(first, last)
    void [graph.nodes, graph.rootNodes, graph.edges, first.type, last.dependencies, first.dependents]
    using clone = graph.clone()
    clone.findInClone(kernel)
    using exec = graph.instantiate()
    exec.updateNode(first, fillNode(memory, 2))
    exec.setEnabled(first, false)
    exec.isEnabled(first)
    exec.update(graph)
    exec.launch()
    exec.upload()
    device.synchronizeSync()
    last.remove()
  },
  'a graph within one, and memory of graphs': () => {
    using inner = Graph.create(device)
    inner.add(emptyNode())
    using graph = Graph.create(device)
    graph.addGraph(inner)
    const { memory, node } = graph.allocate('u8', 16)
    graph.free(memory, { dependencies: [node] })
    using exec = graph.instantiate()
    exec.launch()
    device.synchronizeSync()
    graphMemoryUsage(device)
    resetGraphMemoryHigh(device)
    trimGraphMemory(device)
  },
  'a capture': () => {
    using stream = device.createStream({ nonBlocking: true })
    using memory = DeviceBuffer.zeros(device, 'u32', 4)
    using graph = Graph.capture(stream, () => {
      memory.fill(1, { stream })
    })
    void graph.nodes
  },
  'a user object': () => {
    using object = UserObject.create(() => undefined)
    using graph = Graph.create(device)
    object.retainBy(graph)
    object.releaseBy(graph)
  },
  'contexts of its own': () => {
    using context = CreatedContext.create(device)
    context.synchronizeSync()
    void [context.flags, context.id, context.apiVersion, context.cacheConfig, context.streamPriorityRange]
    context.setLimit('STACK_SIZE', context.getLimit('STACK_SIZE'))
    context.cacheConfig = 'none'
    context.resetPersistingL2Cache()
    context.setCurrent()
    void context.isCurrent
  },
  'a green context': () => {
    using green = GreenContext.create(DeviceResource.of(device).split(2, { groups: 1 }).groups)
    using stream = green.createStream()
    using event = stream.record()
    green.record(event)
    green.waitEvent(event)
    stream.synchronizeSync()
  },
  arrays: async () => {
    using array = CudaArray.create(device, { width: 4, height: 4, format: 'f32', surface: true })
    array.copyFrom(new Float32Array(16))
    array.copyFromSync(new Float32Array(16))
    await array.toArray()
    using texture = TextureObject.create(array)
    using surface = SurfaceObject.create(array)
    void [texture.describe(), surface.describeResource(), texture.describeResource(), texture.describeView()]
    using mipmapped = MipmappedArray.create(device, { width: 4, height: 4, format: 'f32', levels: 2 })
    void mipmapped.level(1)
  },
  'copies that are prepared': () => {
    using from = DeviceBuffer.zeros(device, 'u8', 8)
    using to = DeviceBuffer.zeros(device, 'u8', 8)
    using stream = device.createStream()
    prepareCopies(device, [{ source: from, target: to }]).launch({ stream })
    device.synchronizeSync()
  },
  'what a device tells': () => {
    void [
      device.name,
      device.uuid,
      device.pciBusId,
      device.totalMemory,
      device.memoryInfo(),
      device.attribute('WARP_SIZE'),
    ]
    void [device.canAccessPeer(1), device.peerAttribute('ACCESS_SUPPORTED', 1), device.execAffinitySupported]
    device.setPrimaryContextFlags({})
    Device.getByPciBusId(device.pciBusId)
  },
  'nodes of graphs that wait, signal and choose': () => {
    using memory = DeviceBuffer.zeros(device, 'u32', 4)
    using event = Event.create(device)
    using semaphore = ExternalSemaphore.import(device, { type: 'timeline-fd', handle: exported(8) })
    using graph = Graph.create(device)
    graph.add(hostNode(() => undefined))
    graph.add(eventRecordNode(event))
    graph.add(eventWaitNode(event))
    graph.add(signalSemaphoresNode([{ semaphore, value: 1n }]))
    graph.add(waitSemaphoresNode([{ semaphore, value: 1n }]))
    graph.add(memoryOperationsNode([{ operation: 'write', memory: memory.slice(0, 1), value: 5 }]))
    const { bodies } = graph.addConditional({ type: 'if', defaultValue: 1 })
    bodies[0]?.add(emptyNode())
    void graph.toJSON()
    for (const node of graph.nodes) void nodeParameters(node)
    using exec = graph.instantiate()
    exec.launch()
    device.synchronizeSync()
  },
  'memory and semaphores of others': async () => {
    using memory = ExternalMemory.import(device, { type: 'opaque-fd', handle: exported(4096), byteLength: 4096 })
    using buffer = memory.map('u8', { length: 100 })
    void buffer.address
    using array = MipmappedArray.fromExternal(memory, { width: 4, height: 4, format: 'f32' })
    void array.handle
    using semaphore = ExternalSemaphore.import(device, { type: 'timeline-fd', handle: exported(8) })
    using stream = device.createStream()
    signalSemaphores([{ semaphore, value: 3n }], { stream })
    waitSemaphores([{ semaphore, value: 3n }], { stream })
    await stream.synchronize()
  },
  'words of memory': async () => {
    using memory = DeviceBuffer.zeros(device, 'u32', 2)
    using stream = device.createStream()
    stream.writeValue(memory.slice(0, 1), 1).waitValue(memory.slice(0, 1), 1)
    await stream.synchronize()
  },
  'sparse arrays': async () => {
    using pool = PhysicalMemory.create(device, unit, { tilePool: true })
    using array = CudaArray.create(device, { width: 200, height: 300, format: 'f32', sparse: true })
    void array.sparseProperties()
    using stream = device.createStream()
    mapArrays([{ array, memory: pool }], { stream })
    mapArrays([{ array }], { stream })
    await stream.synchronize()
  },
  'layers and planes': () => {
    using layers = CudaArray.create(device, { width: 4, height: 4, layers: 3, format: 'f32' })
    using other = CudaArray.create(device, { width: 4, height: 4, layers: 3, format: 'f32' })
    other.copyFrom(layers)
    using memory = DeviceBuffer.zeros(device, 'f32', 48)
    layers.copyFrom(memory)
    layers.copyToMemory(memory)
    using stream = device.createStream()
    prepareCopies3D(device, [{ target: layers, source: other }]).launch({ stream })
  },
  'rows among devices': async () => {
    using rows = PitchedBuffer.zeros(device, 'u8', { width: 3, height: 5 })
    using other = PitchedBuffer.zeros(second, 'u8', { width: 3, height: 5 })
    other.copyFrom(rows)
    rows.fillSync(3)
    await rows.copyTo(new Uint8Array(15))
    rows.copyFromSync(new Uint8Array(15))
  },
  'a tensor map': () => {
    using memory = DeviceBuffer.zeros(device, 'f32', 64 * 64)
    const map = TensorMap.tiled(memory, { dimensions: [64, 64], box: [32, 8] })
    map.replaceAddress(memory)
    TensorMap.im2col(memory, {
      dimensions: [16, 4, 4, 4],
      lowerCorner: [-1, -1],
      upperCorner: [0, 0],
      channelsPerPixel: 16,
      pixelsPerColumn: 32,
    })
  },
  tensors: () => {
    using memory = DeviceBuffer.zeros(device, 'f32', 16)
    using capsule = toDLPack(memory)
    using tensor = fromDLPack(capsule)
    void tensor.disposed
  },
  'launches with attributes': () => {
    using module = Module.loadSync(device, ptx)
    using memory = DeviceBuffer.zeros(device, 'u32', 1)
    using stream = device.createStream()
    const kernel = module.kernel('nothing', ['ptr']).with({ priority: 0 })
    kernel.launch({ grid: 1, block: 1, stream }, memory)
    kernel.setAttribute('PREFERRED_SHARED_MEMORY_CARVEOUT', 50)
    stream.setAttributes({ synchronizationPolicy: 'spin' })
  },
  'handles for other processes': () => {
    using memory = DeviceBuffer.zeros(device, 'u8', 16)
    ipcMemoryHandle(memory)
    using event = Event.create(device, { interprocess: true })
    ipcEventHandle(event)
    using pool = MemoryPool.create(device, { handleTypes: 'posix-fd' })
    using handle = pool.export()
    using imported = MemoryPool.import(device, handle)
    void imported.handle
  },
  'what looks into a process': () => {
    profile(device, () => undefined)
    coreDumpSetting(device, 'triggerHost')
    setCoreDumpSetting(device, 'enableOnException', false)
    readLogs({ since: logPosition() })
    onLog(() => undefined)[Symbol.dispose]()
  },
}
