/**
 * Memory as DLPack tensors and back. Also memory that reports its shape, its strides and the stream of its producer.
 */
import { DeviceBuffer } from '@shoal/driver'
import { type DLPackTensor, fromDLPack, toDLPack } from '@shoal/driver/dlpack'
import {
  DisposedError,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  streamProtocol,
  toMemoryRange,
  toStridedRange,
} from '@shoal/types'
import { join } from '../clock.js'
import { arrays, type Block, bytesOf, type Memory, type ModelArray, type ModelType, modelTypes } from '../memory.js'
import { Mismatch, type Operation } from '../operation.js'
import type { StreamModel, World } from '../world.js'
import { adding, change, liveModules, signatures, wordsOf } from './kernels.js'
import { addRoot, memoryOf, someLength } from './making.js'
import { asOption } from './transfers.js'

type Facts = Partial<Pick<MemoryRange, 'shape' | 'strides' | 'stream' | 'readOnly' | 'length'>>

/**
 * Returns the memory of a buffer with additional facts. Each use reads them again, as with memory of other libraries.
 */
function telling(buffer: MemoryLike, facts: Facts): MemoryLike {
  return {
    get [memoryProtocol]() {
      return { ...buffer[memoryProtocol], version: 1, ...facts } as const
    },
  }
}

/** Returns memory that reports pending work on a stream. */
export function pendingOn({ stream }: StreamModel, buffer: MemoryLike): MemoryLike {
  const { handle } = stream[streamProtocol]
  return telling(buffer, { stream: handle === 0n ? 1n : handle })
}

/** Converts new memory, or a part of it, to a tensor. Nothing else keeps the given buffer alive. */
function tensorOf(owner: never, values: ModelArray, start: number, versioned: boolean) {
  const whole = DeviceBuffer.from(owner, values as never) as DeviceBuffer
  const given = start === 0 ? whole : whole.slice(start)
  const capsule = toDLPack(given, { versioned })
  return { capsule, given: new WeakRef(given), whole: start === 0 ? undefined : whole }
}

const takeOver: Operation = {
  name: 'take memory over as a tensor',
  weight: 5,
  async run(world) {
    const device = world.random.integer(0, world.devices.length - 1)
    const owner = world.devices[device] as never
    const dtype = world.one(modelTypes)
    const values = world.values(dtype, someLength(world))
    // Elements of any type are aligned if they start where a root may start.
    const start = 8 * world.random.integer(0, Math.floor((values.length - 1) / 8))
    const versioned = world.chance(0.5)
    const { capsule, given, whole } = tensorOf(owner, values, start, versioned)
    let isReleased = false
    const released = capsule.released.then(() => {
      isReleased = true
      const source = whole ?? given.deref()
      source?.dispose()
    })
    const tensor = world.chance(0.5) ? fromDLPack(capsule) : fromDLPack(capsule.take(), { versioned })
    const name = `tensor of ${dtype} × ${values.length - start}`
    world.refused(`${name} taken twice`, () => capsule.take(), [TypeError])
    // The tensor owns the memory now.
    if (world.chance(0.5)) capsule.dispose()
    world.equal(`dtype of ${name}`, tensor.dtype, dtype)
    const buffer = DeviceBuffer.view(owner, tensor, dtype) as DeviceBuffer<ModelType>
    const added = addRoot(world, 'tensor', {
      buffer,
      dtype,
      device,
      object: tensor,
      async dispose() {
        if (!tensor.disposed) {
          // Only the tensor holds the memory, so the garbage collector must not have taken it.
          if (given.deref() === undefined) throw new Mismatch(`the collector took the memory of ${name}`)
          world.equal(`whether ${name} was released before its end`, isReleased, false)
        }
        tensor.dispose()
        await released
      },
    })
    added.root.block.write(0, bytesOf(values).subarray(start * values.BYTES_PER_ELEMENT))
    return `${added.name}: ${name}`
  },
}

const drop: Operation = {
  name: 'drop tensors',
  weight: 2,
  run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const { buffer } = memory
    const capsule = toDLPack(buffer)
    world.later(`a tensor of ${memory.name} that nobody took`, capsule.released, () => {})
    capsule.dispose()
    world.refused('a capsule that is disposed of', () => capsule.take(), [DisposedError])
    world.refused('a capsule that is disposed of', () => fromDLPack(capsule), [DisposedError])
    // The garbage collector calls the deleters of these tensors.
    for (let count = 0; count < 5; count += 1) toDLPack(buffer, { versioned: count > 2 })
    if (world.chance(0.2)) globalThis.gc?.()
    return `of ${memory.name}`
  },
}

/** Returns the strides between elements and the offset of each element, in elements. */
function someLayout(world: World, length: number): { shape: number[]; strides: number[]; offsets: number[] } {
  const rows = world.random.integer(1, Math.min(length, 8))
  const columns = world.random.integer(1, Math.max(1, Math.floor(length / rows)))
  const way = world.random.integer(0, 3)
  const gap = world.random.integer(0, Math.floor(length / rows) - columns)
  const strides = [
    [columns, 1], // without gaps
    [columns + gap, 1],
    [1, rows],
    [0, 1], // the same row again and again
  ][way] as [number, number]
  const offsets: number[] = []
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) offsets.push(row * strides[0] + column * strides[1])
  }
  return { shape: [rows, columns], strides, offsets }
}

const layouts: Operation = {
  name: 'say how memory lies',
  weight: 5,
  async run(world) {
    const memory = world.pick(world.liveMemories())
    if (memory === undefined) return undefined
    const { buffer, dtype, name, root } = memory
    const { shape, strides, offsets } = someLayout(world, memory.length)
    const { length } = offsets
    const readOnly = world.chance(0.3)
    const told = `${name} as [${shape}] by [${strides}]`
    const given = telling(buffer, { shape, strides, length, readOnly })
    const view = (): DeviceBuffer => DeviceBuffer.view(world.devices[root.device] as never, given, dtype)
    const isContiguous = offsets.every((offset, index) => offset === index)
    if (isContiguous) world.equal(`length of ${told}`, toMemoryRange(given).length, length)
    else {
      world.refused(`${told}, without gaps`, () => toMemoryRange(given), [RangeError])
      world.refused(`${told}, as a buffer`, view, [RangeError])
    }
    const [rows = 0, columns = 0] = shape
    const lies: readonly Facts[] = [
      { shape: [rows, columns + 1], length },
      { shape, strides: [memory.length, memory.length + 1], length: rows * columns },
      { shape, strides: [1, -1], length },
      { shape, strides: [1], length },
    ]
    // A single row or column uses no stride, so a false stride does no harm.
    const lie = world.one(rows > 1 && columns > 1 ? lies : [lies[0] as Facts, ...lies.slice(2)])
    world.refused(`${name}, with a lie`, () => toStridedRange(telling(buffer, lie)), [RangeError])
    if (readOnly) world.refused(`${told}, to be written`, () => toDLPack(given), [TypeError])
    using tensor = fromDLPack(toDLPack(given, { versioned: readOnly || world.chance(0.5) }))
    const range = toStridedRange(tensor)
    world.equal(`shape of ${told}`, String(range.shape), String(shape))
    world.equal(`strides of ${told}`, String(range.strides), String(strides))
    world.equal(`whether ${told} is read-only`, range.readOnly === true, readOnly)
    world.equal(`address of ${told}`, range.address, buffer.address)
    const bytes = arrays[dtype].BYTES_PER_ELEMENT
    world.equal(`bytes of ${told}`, range.byteLength, (Math.max(...offsets) + 1) * bytes)
    // Compares the elements one by one.
    await world.order(undefined, [{ block: root.block, write: false }])
    const found = DeviceBuffer.fromAddress(world.devices[root.device] as never, range.address, 'u8', range.byteLength)
    const all = found.toArraySync()
    for (const offset of offsets) {
      const at = offset * bytes
      world.compare(told, all.subarray(at, at + bytes), root.block.expected(memory.offset + at, bytes))
    }
    return told
  },
}

const behindProducer: Operation = {
  name: 'take memory behind its producer',
  weight: 6,
  async run(world) {
    const way = world.random.integer(0, 3)
    const device = world.random.integer(0, world.devices.length - 1)
    const module = way === 3 ? world.pick(liveModules(world, device)) : undefined
    const source = module === undefined ? world.pick(world.liveMemories()) : wordsOf(world, device)
    if (source === undefined) return undefined
    const { block } = source.root
    const [producer, consumer] = [0, 1].map(() => world.one(world.liveStreams(source.root.device))) as [
      StreamModel,
      StreamModel,
    ]
    await world.order(producer.queue, [{ block, write: true }])
    await world.delay(producer, world.one([0.1, 0.5, 2]))
    const values = world.values(source.dtype, source.length)
    const value = world.values(source.dtype, 1)[0]
    source.buffer.fill(value as never, { stream: producer.stream })
    world.use(producer.queue, [{ block, write: true }])
    block.write(source.offset, bytesOf(values.fill(value as never)))
    const given = pendingOn(producer, source.buffer)
    const told = `${source.name}, pending on ${producer.name}, on ${consumer.name}`
    // Only the stream that the memory reports orders the two.
    const take = (uses: readonly { block: Block; write: boolean }[]): void => {
      join(consumer.queue.clock, producer.queue.clock)
      world.use(consumer.queue, uses)
    }
    const options = asOption(world, consumer)
    if (module !== undefined) {
      const word = world.random.word()
      const kernel = module.module.kernel('addEach', signatures.addEach)
      kernel.launch({ grid: 2, block: 32, ...options }, given, word, source.length)
      take([{ block, write: true }])
      change(source, adding(word))
      return `${told}, by a kernel`
    }
    if (way === 0) {
      const target = memoryOf(world, source.root.device, source.dtype, source.length, [source])
      const uses = [
        { block: target.root.block, write: true },
        { block, write: false },
      ]
      await world.order(consumer.queue, uses.slice(0, 1))
      target.buffer.copyFrom(given as never, options)
      take(uses)
      target.root.block.copy(target.offset, block.expected(source.offset, source.byteLength))
      if (world.chance(0.15)) await endNow(source)
      return `${told}, into ${target.name}`
    }
    const owner = world.devices[source.root.device] as never
    let tensor: DLPackTensor | undefined
    if (way === 1) {
      world.refused(`${told}, as a tensor`, () => toDLPack(given), [TypeError])
      tensor = fromDLPack(toDLPack(given, { stream: consumer.stream }))
    }
    const promise = DeviceBuffer.view(owner, tensor ?? given, source.dtype).toArray({ stream: consumer.stream })
    take([{ block, write: false }])
    const expected = block.expected(source.offset, source.byteLength)
    world.later(told, promise, (found: ArrayBufferView) => {
      tensor?.dispose()
      world.compare(told, bytesOf(found), expected)
    })
    if (tensor === undefined && world.chance(0.15)) await endNow(source)
    return `${told}, ${tensor === undefined ? 'as a view' : 'as a tensor'}`
  },
}

/** Disposes of memory that work of its device still uses. */
async function endNow({ root }: Memory): Promise<void> {
  root.disposed = true
  await root.dispose()
}

export const tensors: readonly Operation[] = [takeOver, drop, layouts, behindProducer]
