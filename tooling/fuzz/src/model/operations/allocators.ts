/** Memory of caching pools, registered host memory and managed memory. */
import { CachingPool, type DeviceBuffer, type ManagedBuffer, RegisteredBuffer } from '@shoal/driver'
import * as runtime from '@shoal/runtime'
import { DisposedError, StatusError } from '@shoal/types'
import { Block, bytesOf, type Memory, type ModelArray, type ModelType, modelTypes } from '../memory.js'
import type { Operation } from '../operation.js'
import type { StreamModel, World } from '../world.js'
import { addRoot, someLength } from './making.js'
import { asOption, streamFor } from './transfers.js'

interface CachingModel {
  readonly name: string
  readonly pool: CachingPool
  readonly device: number
  readonly memories: Memory[]
}

const cachingPools = (): CachingModel[] => []

const makePool: Operation = {
  name: 'make a caching pool',
  weight: 2,
  run(world) {
    const list = world.part(cachingPools)
    if (list.filter(({ pool }) => !pool.disposed).length > 2) return undefined
    const device = world.random.integer(0, world.devices.length - 1)
    const options = { maximumBytes: world.one([undefined, 2 ** 24]) }
    const pool = world.chance(0.3)
      ? (runtime.CachingPool.create({ ...options, device: world.runtimeDevices[device] as never }) as CachingPool)
      : CachingPool.create(world.devices[device] as never, options)
    const model = { name: world.name('cachingPool'), pool, device, memories: [] }
    list.push(model)
    world.cleanups.push(() => pool.dispose())
    return model.name
  },
}

function livePool(world: World): CachingModel | undefined {
  return world.pick(world.part(cachingPools).filter(({ pool }) => !pool.disposed))
}

/** Returns memory to its pool. Each other stream that still uses the memory is recorded, or the host waits for it. */
async function giveBack(world: World, pool: CachingPool, memory: Memory, own: StreamModel): Promise<void> {
  if (memory.buffer.disposed) return memory.buffer.dispose()
  const { block } = memory.root
  const uses = [block.lastWrite, ...block.reads].filter((use) => use !== undefined)
  const streams = new Set(uses.map(({ queue }) => world.streams.find((stream) => stream.queue === queue)))
  const isNamed = world.aside.integer(0, 1) === 0
  for (const stream of streams) {
    if (stream === own && !own.disposed) continue
    const canBeNamed = stream !== undefined && !stream.disposed && stream.device === memory.root.device
    if (isNamed && canBeNamed && !pool.disposed) pool.recordUse(memory.buffer, stream.stream)
    else await world.order(undefined, [{ block, write: true }])
  }
  memory.buffer.dispose()
}

const allocate: Operation = {
  name: 'allocate from a caching pool',
  weight: 10,
  run(world) {
    const model = livePool(world)
    const stream = model === undefined ? undefined : world.pick(world.liveStreams(model.device))
    if (model === undefined || stream === undefined) return undefined
    const { pool, memories } = model
    const buffer = pool.allocate(stream.stream, world.one(modelTypes), someLength(world))
    const memory: Memory = addRoot(world, 'pooled', {
      buffer: buffer as DeviceBuffer<ModelType>,
      dtype: buffer.dtype,
      device: model.device,
      object: buffer,
      dispose: () => giveBack(world, pool, memory, stream),
    })
    memories.push(memory)
    // The previous owner's work may still run on the stream, so other streams must wait for it.
    world.use(stream.queue, [{ block: memory.root.block, write: true }])
    return `${memory.name} of ${model.name} on ${stream.name}`
  },
}

const tendPool: Operation = {
  name: 'tend a caching pool',
  weight: 3,
  async run(world) {
    const model = livePool(world)
    if (model === undefined) return undefined
    const { pool, name, memories } = model
    const live = memories.filter(({ root }) => !root.disposed)
    const least = live.reduce((sum, { root }) => sum + root.block.bytes.length, 0)
    const { used, reserved } = pool
    if (used.current < least || used.current > reserved.current) {
      throw new Error(`${name} says that ${used.current} of ${reserved.current} bytes are used, which ${least} are`)
    }
    if (live.length === 0) world.equal(`used bytes of ${name}`, used.current, 0)
    const way = world.random.integer(0, 4)
    if (way === 0) {
      if (world.chance(0.5)) pool.dispose()
      else await pool[Symbol.asyncDispose]()
      const stream = world.pick(world.liveStreams(model.device))
      if (stream !== undefined)
        world.refused(`allocate() of ${name}`, () => pool.allocate(stream.stream, 'u8', 1), [DisposedError])
      return `${name} disposed of`
    }
    if (way === 1) world.later(`trim() of ${name}`, pool.trim(world.one([0, 2 ** 20])), () => {})
    if (way === 2) pool.trimSync()
    if (way === 3) pool.resetHighWaterMarks()
    if (way === 4) {
      const foreign = world.pick(world.liveMemories().filter((other) => other.root.name.startsWith('memory')))
      const stream = world.pick(world.liveStreams(model.device))
      if (foreign !== undefined && stream !== undefined)
        world.refused('recordUse() of other memory', () => pool.recordUse(foreign.buffer, stream.stream), [TypeError])
    }
    return `${name}, way ${way}`
  },
}

interface RegisteredModel {
  readonly name: string
  readonly registered: RegisteredBuffer
  readonly array: ModelArray
  readonly dtype: ModelType
  readonly block: Block
}

const registrations = (): RegisteredModel[] => []

const register: Operation = {
  name: 'register memory of the host',
  weight: 4,
  run(world) {
    const list = world.part(registrations)
    if (list.filter(({ registered }) => !registered.disposed).length > 4) return undefined
    const device = world.random.integer(0, world.devices.length - 1)
    const dtype = world.one(modelTypes)
    const array = world.values(dtype, someLength(world))
    const options = { mapped: world.chance(0.5), portable: world.chance(0.5) }
    const { buffer } = array
    const registered = world.chance(0.3)
      ? runtime.RegisteredBuffer.register(buffer, { ...options, device: world.runtimeDevices[device] as never })
      : RegisteredBuffer.register(world.devices[device] as never, buffer, options)
    const again = (): unknown => RegisteredBuffer.register(world.devices[device] as never, buffer)
    world.refused('a second registration', again, [StatusError, TypeError])
    const block = new Block(buffer.byteLength)
    block.write(0, bytesOf(array))
    const name = world.name('registered')
    list.push({ name, registered: registered as RegisteredBuffer, array, dtype, block })
    world.cleanups.push(() => registered.dispose())
    return `${name}: ${dtype} × ${array.length}`
  },
}

const useRegistered: Operation = {
  name: 'copy to or from registered memory',
  weight: 8,
  async run(world) {
    const model = world.pick(world.part(registrations))
    if (model === undefined) return undefined
    const { registered, array, block, name } = model
    const memory = world.pick(world.liveMemories(model.dtype, array.length))
    // After its disposal, the array is an ordinary array, which a copy fills when its promise settles.
    if (memory === undefined || registered.disposed || world.chance(0.2)) {
      await world.order(undefined, [{ block, write: true }])
      world.compare(name, bytesOf(array), block.expected(0, block.bytes.length))
      const values = bytesOf(world.values(model.dtype, array.length))
      bytesOf(array).set(values)
      block.write(0, values)
      return `${name} by the host`
    }
    const stream = streamFor(world, memory)
    const isUpload = world.chance(0.5)
    const uses = [
      { block: memory.root.block, write: isUpload },
      { block, write: !isUpload },
    ]
    await world.order(stream.queue, uses)
    const told = `${memory.name} ${isUpload ? 'from' : 'to'} ${name} on ${stream.name}`
    const options = asOption(world, stream)
    if (isUpload) {
      memory.buffer.copyFrom(array as never, options)
      memory.root.block.copy(memory.offset, block.expected(0, block.bytes.length))
    } else {
      const promise = memory.buffer.copyTo(array as never, options)
      block.copy(0, memory.root.block.expected(memory.offset, memory.byteLength))
      world.later(told, promise, () => {})
    }
    world.use(stream.queue, uses)
    if (world.chance(0.2)) {
      // Copies hold the registration until they end. The array remains valid.
      registered.dispose()
      return `${told}, disposed of at once`
    }
    return told
  },
}

const useManaged: Operation = {
  name: 'use managed memory from the host',
  weight: 6,
  async run(world) {
    const memory = world.pick(
      world.liveMemories().filter((one) => one.root.name === one.name && /^managed/.test(one.name)),
    )
    if (memory === undefined) return undefined
    const managed = memory.root.object as ManagedBuffer<ModelType>
    const { block } = memory.root
    const place = world.one(['host', memory.root.device] as const)
    switch (world.random.integer(0, 3)) {
      case 0: {
        const stream = streamFor(world, memory)
        const uses = [{ block, write: true }]
        await world.order(stream.queue, uses)
        managed.prefetch(place, asOption(world, stream))
        world.use(stream.queue, uses)
        return `${memory.name} prefetched on ${stream.name}`
      }
      case 1: {
        managed.advise('preferredLocation', place).advise('readMostly')
        world.equal(`advice of ${memory.name}`, managed.attributes.readMostly, true)
        managed.unadvise('readMostly')
        world.equal(`advice of ${memory.name}`, managed.attributes.readMostly, false)
        return `${memory.name} advised`
      }
      case 2: {
        const stream = streamFor(world, memory)
        if (stream.queue.kind === 'legacy') return undefined
        const uses = [{ block, write: true }]
        await world.order(stream.queue, uses)
        managed.attachTo(stream.stream, 'global')
        world.use(stream.queue, uses)
        return `${memory.name} attached on ${stream.name}`
      }
      default: {
        await world.order(undefined, [{ block, write: true }])
        const found = bytesOf(managed.array as ArrayBufferView)
        world.compare(memory.name, found, block.expected(0, found.length))
        const values = bytesOf(world.values(memory.dtype, memory.length))
        found.set(values)
        block.write(0, values)
        return `${memory.name} by the host`
      }
    }
  },
}

export const allocators: readonly Operation[] = [makePool, allocate, tendPool, register, useRegistered, useManaged]
