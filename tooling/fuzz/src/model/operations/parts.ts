/** Parts of a device, contexts other than the primary context, and memory of other libraries. */
import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeviceBuffer, Module, Stream } from '@shoal/driver'
import { CreatedContext, DeviceResource, GreenContext } from '@shoal/driver/context'
import { ExternalMemory } from '@shoal/driver/external'
import * as runtime from '@shoal/runtime/context'
import { DisposedError } from '@shoal/types'
import { arrays, bytesOf, type ModelType, modelTypes } from '../memory.js'
import type { Operation } from '../operation.js'
import type { StreamModel, World } from '../world.js'
import { kernelSource } from './kernelSource.js'
import { signatures } from './kernels.js'
import { addRoot, someLength } from './making.js'

interface GreenModel {
  readonly name: string
  readonly green: GreenContext
  readonly device: number
  readonly streams: StreamModel[]
}

const greens = (): GreenModel[] => []
const liveGreens = (world: World): GreenModel[] => world.part(greens).filter(({ green }) => !green.disposed)

const makeGreen: Operation = {
  name: 'make a green context',
  weight: 2,
  run(world) {
    if (liveGreens(world).length > 2) return undefined
    const device = world.random.integer(0, world.devices.length - 1)
    const whole = DeviceResource.of(world.devices[device] as never)
    const { groups, remaining } = whole.split(world.random.integer(1, Math.min(whole.multiprocessors, 4)), {
      groups: 1,
    })
    const part = world.one([whole, ...groups, ...(remaining === undefined ? [] : [remaining])])
    const green = world.chance(0.3)
      ? (runtime.GreenContext.create(part as never) as GreenContext)
      : GreenContext.create(part)
    const model = { name: world.name('green'), green, device, streams: [] }
    world.equal(`multiprocessors of ${model.name}`, green.resource.multiprocessors, part.multiprocessors)
    world.part(greens).push(model)
    world.cleanups.push(async () => {
      if (!green.disposed) await endGreen(world, model)
    })
    return `${model.name}: ${part.multiprocessors} of ${whole.multiprocessors} multiprocessors`
  },
}

const streamOfGreen: Operation = {
  name: 'make a stream of a green context',
  weight: 4,
  run(world) {
    const model = world.pick(liveGreens(world))
    if (model === undefined || world.liveStreams().length > 12) return undefined
    const queue = world.clocks.addQueue('nonBlocking', model.device)
    const name = world.name('greenStream')
    const stream = { name, stream: model.green.createStream(), queue, device: model.device, disposed: false }
    model.streams.push(stream)
    world.streams.push(stream)
    return `${name} of ${model.name}`
  },
}

/** Disposes of a green context. Its streams can no longer be used, but can still be disposed of. */
async function endGreen(world: World, { green, streams, device }: GreenModel): Promise<void> {
  if (streams.some(({ disposed }) => !disposed)) await world.synchronizeDevice(device)
  green.dispose()
  for (const stream of streams.filter(({ disposed }) => !disposed)) {
    stream.disposed = true
    world.refused(`query() of ${stream.name}`, () => stream.stream.query(), [DisposedError])
    stream.stream.dispose()
  }
}

const disposeGreen: Operation = {
  name: 'dispose of a green context',
  weight: 2,
  async run(world) {
    const model = world.pick(liveGreens(world))
    if (model === undefined) return undefined
    await endGreen(world, model)
    world.refused(`a stream of ${model.name}`, () => model.green.createStream(), [DisposedError])
    world.refused(`handle of ${model.name}`, () => model.green.handle, [DisposedError])
    return model.name
  },
}

/** Objects of such a context cannot be used elsewhere, so this operation creates and uses them all. */
const ownContext: Operation = {
  name: 'work in a context of its own',
  weight: 4,
  async run(world) {
    const device = world.random.integer(0, world.devices.length - 1)
    const context = CreatedContext.create(world.devices[device] as never)
    const stream = Stream.create(context, { nonBlocking: world.chance(0.5) })
    const length = someLength(world)
    const values = world.values('u32', length) as Uint32Array
    const memory = DeviceBuffer.from(context, values)
    const copy = DeviceBuffer.zeros(context, 'u32', length)
    const module = Module.loadSync(context, kernelSource)
    const value = world.random.word()
    module.kernel('addEach', signatures.addEach).launch({ grid: 2, block: 32, stream }, memory, value, length)
    copy.copyFrom(memory, { stream })
    const name = world.name('context')
    const elsewhere = world.pick(world.liveStreams(device))
    if (elsewhere !== undefined)
      world.refused(`a fill on ${elsewhere.name}`, () => copy.fill(0, { stream: elsewhere.stream }), [TypeError])
    const promise = copy.toArray({ stream })
    const expected = values.map((word) => word + value)
    world.later(name, promise, (found: ArrayBufferView) => {
      const bytes = bytesOf(expected)
      world.compare(name, bytesOf(found), { bytes, defined: new Uint8Array(bytes.length).fill(1) })
    })
    // The context ends with the last of these objects.
    const owners = world.random.shuffled([stream, memory, copy, module, context])
    if (world.chance(0.3)) await promise
    for (const owner of owners) owner.dispose()
    world.refused(`a stream of ${name}`, () => Stream.create(context), [DisposedError])
    return `${name} of device ${device}`
  },
}

const external: Operation = {
  name: 'import memory by its descriptor',
  weight: 3,
  run(world) {
    const device = world.random.integer(0, world.devices.length - 1)
    const dtype = world.one(modelTypes)
    const length = someLength(world)
    const byteOffset = world.one([0, 0, 64, 4096])
    const byteLength = byteOffset + length * arrays[dtype].BYTES_PER_ELEMENT
    const folder = mkdtempSync(join(tmpdir(), 'shoal-fuzz-'))
    const path = join(folder, 'memory')
    const descriptor = openSync(path, 'w+')
    ftruncateSync(descriptor, byteLength)
    const own = openSync(path, 'r+')
    rmSync(folder, { recursive: true })
    const owner = world.devices[device] as never
    const memory = ExternalMemory.import(owner, { type: 'opaque-fd', handle: descriptor, byteLength })
    const buffer = memory.map(dtype, { byteOffset, length }) as DeviceBuffer<ModelType>
    // The memory stays as long as a buffer of it exists.
    if (world.chance(0.5)) memory.dispose()
    world.refused('a map beyond the end', () => memory.map(dtype, { byteOffset, length: length + 1 }), [
      RangeError,
      DisposedError,
    ])
    const added = addRoot(world, 'external', {
      buffer,
      dtype,
      device,
      object: buffer,
      dispose: () => (world.chance(0.5) ? buffer.dispose() : buffer[Symbol.asyncDispose]()),
    })
    const { block } = added.root
    block.write(0, new Uint8Array(block.bytes.length))
    world.cleanups.push(async () => {
      await world.order(undefined, [{ block, write: true }])
      const found = new Uint8Array(block.bytes.length)
      readSync(own, found, 0, found.length, byteOffset)
      closeSync(own)
      memory.dispose()
      world.compare(`the file of ${added.name}`, found, block.expected(0, found.length))
    })
    return `${added.name}: ${dtype} × ${length}`
  },
}

export const parts: readonly Operation[] = [makeGreen, streamOfGreen, disposeGreen, ownContext]
/**
 * Not for workers: the end of a worker closes its descriptors, including those that the driver owns after the import.
 */
export const imports: readonly Operation[] = [external]
