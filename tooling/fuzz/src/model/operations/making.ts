/** Creates streams, events, memory of every kind, and views of memory. */
import {
  AddressRange,
  DeviceBuffer,
  Event,
  GrowableBuffer,
  ManagedBuffer,
  type MappedRange,
  MemoryPool,
  PhysicalMemory,
  PinnedBuffer,
  Stream,
} from '@shoal/driver'
import * as runtime from '@shoal/runtime'
import { arrays, Block, bytesOf, type Memory, type ModelType, modelTypes, type Root } from '../memory.js'
import type { Operation } from '../operation.js'
import type { StreamModel, World } from '../world.js'

/** Returns a length. Most are short, some odd and some long, because bugs often depend on a boundary. */
export function someLength(world: World): number {
  return world.one([1, 2, 3, 4, 4, 4, 8, 8, 16, 16, 16, 33, 64, 64, 255, 1000])
}

/** Adds an object that owns memory, and all its elements as one memory. */
export function addRoot(
  world: World,
  kind: string,
  parts: Omit<Root, 'name' | 'disposed' | 'block'> & RootParts,
): Memory {
  const { buffer, dtype, block = new Block(buffer.byteLength), device, dispose, object } = parts
  const root: Root = { name: world.name(kind), device, block, disposed: false, dispose, object }
  world.roots.push(root)
  const memory: Memory = {
    name: root.name,
    root,
    buffer,
    dtype,
    offset: 0,
    length: buffer.length,
    byteLength: buffer.byteLength,
  }
  world.memories.push(memory)
  return memory
}

interface RootParts {
  readonly buffer: DeviceBuffer<ModelType>
  readonly dtype: ModelType
  readonly block?: Block
}

/** Returns memory of a device with this length. It picks existing memory or allocates new memory. */
export function memoryOf(
  world: World,
  device: number,
  dtype: ModelType,
  length: number,
  not: readonly Memory[],
): Memory {
  const found = world
    .liveMemories(dtype, length)
    .filter(({ root }) => root.device === device && !not.some((other) => other.root === root))
  const chosen = world.pick(found)
  if (chosen !== undefined && world.chance(0.8)) return chosen
  const values = world.values(dtype, length)
  const buffer = DeviceBuffer.from(world.devices[device] as never, values as never) as DeviceBuffer<ModelType>
  const memory = addRoot(world, 'memory', { buffer, dtype, device, object: buffer, dispose: () => buffer.dispose() })
  memory.root.block.write(0, bytesOf(values))
  return memory
}

/** Returns a device, and whether to use it through `runtime` or `driver`. */
function someDevice(world: World): { device: number; withRuntime: boolean } {
  return { device: world.random.integer(0, world.devices.length - 1), withRuntime: world.chance(0.3) }
}

export function addStream(world: World, device: number, withRuntime: boolean, nonBlocking: boolean): StreamModel {
  const options = { nonBlocking }
  const stream = withRuntime
    ? runtime.Stream.create({ ...options, device: world.runtimeDevices[device] as runtime.Device })
    : Stream.create(world.one(world.devices.filter(({ ordinal }) => ordinal === device)), options)
  const queue = world.clocks.addQueue(nonBlocking ? 'nonBlocking' : 'blocking', device)
  const model = { name: world.name('stream'), stream: stream as Stream, queue, device, disposed: false }
  world.streams.push(model)
  return model
}

const makeStream: Operation = {
  name: 'make a stream',
  weight: 4,
  run(world) {
    if (world.liveStreams().length > 10) return undefined
    const { device, withRuntime } = someDevice(world)
    return addStream(world, device, withRuntime, world.chance(0.5)).name
  },
}

const makeEvent: Operation = {
  name: 'make an event',
  weight: 3,
  run(world) {
    if (world.events.filter(({ disposed }) => !disposed).length > 6) return undefined
    const { device, withRuntime } = someDevice(world)
    const options = { timing: world.chance(0.5), blocking: world.chance(0.5) }
    const event = withRuntime
      ? runtime.Event.create({ ...options, device: world.runtimeDevices[device] as runtime.Device })
      : Event.create(world.devices[device] as never, options)
    world.events.push({ name: world.name('event'), event: event as Event, device, mark: undefined, disposed: false })
    return world.events.at(-1)?.name
  },
}

const makeDeviceMemory: Operation = {
  name: 'make device memory',
  weight: 12,
  run(world) {
    const { device, withRuntime } = someDevice(world)
    const owner = world.devices[device] as never
    const dtype = world.one(modelTypes)
    const length = someLength(world)
    const values = world.values(dtype, length)
    const option = { device: world.runtimeDevices[device] as runtime.Device }
    const way = world.random.integer(0, 2)
    const Buffer = runtime.DeviceBuffer
    const buffer =
      way === 0
        ? withRuntime
          ? Buffer.allocate(dtype, length, option)
          : DeviceBuffer.allocate(owner, dtype, length)
        : way === 1
          ? withRuntime
            ? Buffer.zeros(dtype, length, option)
            : DeviceBuffer.zeros(owner, dtype, length)
          : withRuntime
            ? Buffer.from(values as never, option)
            : DeviceBuffer.from(owner, values as never)
    const memory = addRoot(world, 'memory', {
      buffer: buffer as DeviceBuffer<ModelType>,
      dtype,
      device,
      object: buffer,
      dispose: () => (world.chance(0.5) ? buffer.dispose() : buffer[Symbol.asyncDispose]()),
    })
    if (way === 1) memory.root.block.write(0, new Uint8Array(memory.byteLength))
    if (way === 2) memory.root.block.write(0, bytesOf(values))
    return `${memory.name}: ${dtype} × ${length}`
  },
}

/** Adds memory that a stream allocates. Other streams must wait for that stream. */
function addStreamMemory(world: World, stream: StreamModel, buffer: DeviceBuffer<ModelType>): Memory {
  const memory = addRoot(world, 'streamMemory', {
    buffer,
    dtype: buffer.dtype,
    device: stream.device,
    object: buffer,
    async dispose() {
      await world.order(stream.disposed ? undefined : stream.queue, [{ block: memory.root.block, write: true }])
      buffer.dispose()
    },
  })
  world.use(stream.queue, [{ block: memory.root.block, write: true }])
  return memory
}

const allocateOnStream: Operation = {
  name: 'allocate on a stream',
  weight: 6,
  run(world) {
    const stream = world.pick(world.liveStreams())
    if (stream === undefined) return undefined
    const buffer = DeviceBuffer.allocateOn(stream.stream, world.one(modelTypes), someLength(world))
    return `${addStreamMemory(world, stream, buffer).name} on ${stream.name}`
  },
}

interface PoolModel {
  readonly name: string
  readonly pool: MemoryPool
  readonly device: number
  disposed: boolean
}
const pools = (): PoolModel[] => []

const makePool: Operation = {
  name: 'make a pool',
  weight: 2,
  run(world) {
    const list = world.part(pools)
    if (list.filter(({ disposed }) => !disposed).length > 2) return undefined
    const { device, withRuntime } = someDevice(world)
    const pool = withRuntime
      ? runtime.MemoryPool.create({ device: world.runtimeDevices[device] as runtime.Device })
      : MemoryPool.create(world.devices[device] as never)
    const model = { name: world.name('pool'), pool: pool as MemoryPool, device, disposed: false }
    list.push(model)
    world.cleanups.push(() => pool.dispose())
    return model.name
  },
}

const usePool: Operation = {
  name: 'use a pool',
  weight: 8,
  run(world) {
    const model = world.pick(world.part(pools).filter(({ disposed }) => !disposed))
    if (model === undefined) return undefined
    const way = world.random.integer(0, 9)
    if (way === 0) {
      model.pool.dispose()
      model.disposed = true
      return `${model.name} disposed of`
    }
    if (way === 1) {
      model.pool.trimTo(world.one([0, 4096, 2 ** 21]))
      model.pool.releaseThreshold = world.one([0, 2 ** 22])
      return `${model.name} trimmed`
    }
    const stream = world.pick(world.liveStreams(model.device))
    if (stream === undefined) return undefined
    const buffer = model.pool.allocate(stream.stream, world.one(modelTypes), someLength(world))
    return `${addStreamMemory(world, stream, buffer).name} of ${model.name} on ${stream.name}`
  },
}

const makePinned: Operation = {
  name: 'make page-locked memory',
  weight: 6,
  run(world) {
    if (world.livePinned().length > 8) return undefined
    const { device, withRuntime } = someDevice(world)
    const dtype = world.one(modelTypes)
    const values = world.values(dtype, someLength(world))
    const options = { mapped: world.chance(0.5), portable: world.chance(0.5), dtype }
    const buffer = withRuntime
      ? runtime.PinnedBuffer.from(
          values as never,
          { ...options, device: world.runtimeDevices[device] as never } as never,
        )
      : PinnedBuffer.from(world.devices[device] as never, values as never, options as never)
    const block = new Block(buffer.byteLength)
    block.write(0, bytesOf(values))
    const name = world.name('pinned')
    world.pinned.push({ name, buffer: buffer as never, dtype, block, device, disposed: false })
    return `${name}: ${dtype} × ${values.length}`
  },
}

const makeManaged: Operation = {
  name: 'make managed memory',
  weight: 3,
  run(world) {
    const { device, withRuntime } = someDevice(world)
    const dtype = world.one(modelTypes)
    const length = someLength(world)
    const managed = withRuntime
      ? runtime.ManagedBuffer.allocate(dtype, length, { device: world.runtimeDevices[device] as runtime.Device })
      : ManagedBuffer.allocate(world.devices[device] as never, dtype, length)
    const { memory } = managed
    const added = addRoot(world, 'managed', {
      buffer: memory as DeviceBuffer<ModelType>,
      dtype,
      device,
      object: managed,
      dispose: () => managed.dispose(),
    })
    return `${added.name}: ${dtype} × ${length}`
  },
}

/** Growable buffers by their memory. */
export const growables = (): Map<Memory, GrowableBuffer<ModelType>> => new Map()

const makeGrowable: Operation = {
  name: 'make growable memory',
  weight: 2,
  run(world) {
    const { device } = someDevice(world)
    const dtype = world.one(modelTypes)
    const length = someLength(world)
    const { BYTES_PER_ELEMENT: bytes } = arrays[dtype]
    const maximumLength = (3 * 2 ** 21) / bytes
    const isShareable = world.chance(0.5)
    const handleTypes = isShareable ? 'posix-fd' : undefined
    const options = { maximumLength, length, handleTypes } as const
    const growable = GrowableBuffer.reserve(world.devices[device] as never, dtype, options)
    const memory = addRoot(world, isShareable ? 'mappedGrowable' : 'growable', {
      buffer: growable.buffer,
      dtype,
      device,
      object: growable,
      dispose: () => (world.chance(0.5) ? growable.dispose() : growable[Symbol.asyncDispose]()),
    })
    world.part(growables).set(memory, growable)
    return `${memory.name}: ${dtype} × ${length}`
  },
}

/** Physical memory that can be shared, by its memory. */
export const shareables = (): Map<Memory, PhysicalMemory> => new Map()

const makeMapped: Operation = {
  name: 'map memory',
  weight: 2,
  run(world) {
    const { device } = someDevice(world)
    const owner = world.devices[device] as never
    const dtype = world.one(modelTypes)
    const bytes = 2 ** 21
    const physical = PhysicalMemory.create(owner, bytes, { handleTypes: 'posix-fd' })
    const range = AddressRange.reserve(bytes)
    const mapped: MappedRange = range.map(physical)
    // The mapping keeps both alive, in whatever order they are disposed of.
    if (world.chance(0.5)) range.dispose()
    if (world.chance(0.5)) physical.dispose()
    world.cleanups.push(() => {
      range.dispose()
      physical.dispose()
    })
    const length = someLength(world)
    const memory = addRoot(world, 'mapped', {
      buffer: DeviceBuffer.view(owner, mapped, dtype, { length }) as DeviceBuffer<ModelType>,
      dtype,
      device,
      object: mapped,
      dispose: () => (world.chance(0.5) ? mapped.dispose() : mapped[Symbol.asyncDispose]()),
    })
    world.part(shareables).set(memory, physical)
    return `${memory.name}: ${dtype} × ${length}`
  },
}

const makeView: Operation = {
  name: 'make a view',
  weight: 6,
  run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined || world.memories.length > 80) return undefined
    const start = world.random.integer(0, memory.length - 1)
    const end = world.random.integer(start + 1, memory.length)
    const { BYTES_PER_ELEMENT: bytes } = arrays[memory.dtype]
    let buffer: DeviceBuffer<ModelType> = memory.buffer.slice(start, end)
    let { dtype } = memory
    const other = world.one(modelTypes)
    const offset = memory.offset + start * bytes
    const fits =
      buffer.byteLength % arrays[other].BYTES_PER_ELEMENT === 0 && offset % arrays[other].BYTES_PER_ELEMENT === 0
    if (fits && world.chance(0.5)) {
      buffer = buffer.reinterpret(other)
      dtype = other
    }
    const name = world.name('view')
    const { length, byteLength } = buffer
    world.memories.push({ name, root: memory.root, buffer, dtype, offset, length, byteLength })
    return `${name}: ${dtype} × ${length} of ${memory.name}`
  },
}

export const making: readonly Operation[] = [
  makeStream,
  makeEvent,
  makeDeviceMemory,
  allocateOnStream,
  makePool,
  usePool,
  makePinned,
  makeManaged,
  makeGrowable,
  makeMapped,
  makeView,
]
