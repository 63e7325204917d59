/** Memory in rows with gaps: copied whole and in parts, to and from every other kind of memory. */
import { PitchedBuffer } from '@shoal/driver/memory'
import { PitchedBuffer as RuntimePitchedBuffer } from '@shoal/runtime/memory'
import { DisposedError } from '@shoal/types'
import { arrays, Block, bytesOf, type Expected, type ModelType, modelTypes } from '../memory.js'
import type { Operation } from '../operation.js'
import type { StreamModel, World } from '../world.js'
import { asOption } from './transfers.js'

interface Box {
  readonly x: number
  readonly y: number
  readonly z: number
  readonly width: number
  readonly height: number
  readonly depth: number
}

interface RowsModel {
  readonly name: string
  /** The whole memory, or a part of it. */
  readonly buffer: PitchedBuffer<ModelType>
  readonly whole: PitchedBuffer<ModelType>
  readonly dtype: ModelType
  readonly device: number
  /** All elements of the whole memory, without gaps. */
  readonly block: Block
  readonly box: Box
}

const allRows = (): RowsModel[] => []
const liveRows = (world: World): RowsModel[] => world.part(allRows).filter(({ whole }) => !whole.disposed)
const byteLengthOf = ({ dtype }: RowsModel, { width, height, depth }: Box): number =>
  width * height * depth * arrays[dtype].BYTES_PER_ELEMENT

/** Yields the position of each row of the part among the elements of the whole memory, in bytes. */
function* rowsOf(model: RowsModel): Generator<readonly [offset: number, length: number]> {
  const { box, whole, dtype } = model
  const bytes = arrays[dtype].BYTES_PER_ELEMENT
  for (let z = box.z; z < box.z + box.depth; z += 1) {
    for (let y = box.y; y < box.y + box.height; y += 1) {
      yield [((z * whole.height + y) * whole.width + box.x) * bytes, box.width * bytes]
    }
  }
}

/** Returns the elements of the part, row by row. */
function expectedOf(model: RowsModel): Expected {
  const found = [...rowsOf(model)].map(([offset, length]) => model.block.expected(offset, length))
  const join = (parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts))
  return { bytes: join(found.map(({ bytes }) => bytes)), defined: join(found.map(({ defined }) => defined)) }
}

function setTo(model: RowsModel, { bytes, defined }: Expected): void {
  let at = 0
  for (const [offset, length] of rowsOf(model)) {
    const part = { bytes: bytes.subarray(at, at + length), defined: defined.subarray(at, at + length) }
    model.block.copy(offset, part)
    at += length
  }
}

const known = (bytes: Uint8Array): Expected => ({ bytes, defined: new Uint8Array(bytes.length).fill(1) })

const make: Operation = {
  name: 'make memory in rows',
  weight: 4,
  run(world) {
    if (liveRows(world).length > 8) return undefined
    const device = world.random.integer(0, world.devices.length - 1)
    const dtype = world.one(modelTypes)
    const extent = {
      width: world.one([1, 3, 8, 33, 100]),
      height: world.one([1, 2, 5, 16]),
      depth: world.one([1, 1, 2, 3]),
    }
    const owner = world.devices[device] as never
    const withRuntime = world.chance(0.3)
    const option = { device: world.runtimeDevices[device] as never }
    const values = world.values(dtype, extent.width * extent.height * extent.depth)
    const way = world.random.integer(0, 2)
    const Pitched = RuntimePitchedBuffer
    const buffer = (
      way === 0
        ? withRuntime
          ? Pitched.allocate(dtype, extent, option)
          : PitchedBuffer.allocate(owner, dtype, extent)
        : way === 1
          ? withRuntime
            ? Pitched.zeros(dtype, extent, option)
            : PitchedBuffer.zeros(owner, dtype, extent)
          : withRuntime
            ? Pitched.from(values as never, { ...extent, ...option })
            : PitchedBuffer.from(owner, values as never, extent)
    ) as PitchedBuffer<ModelType>
    const block = new Block(values.byteLength)
    if (way === 1) block.write(0, new Uint8Array(values.byteLength))
    if (way === 2) block.write(0, bytesOf(values))
    const name = world.name('rows')
    const box = { x: 0, y: 0, z: 0, ...extent }
    world.part(allRows).push({ name, buffer, whole: buffer, dtype, device, block, box })
    world.cleanups.push(() => buffer.dispose())
    return `${name}: ${dtype} × ${extent.width} × ${extent.height} × ${extent.depth}`
  },
}

const region: Operation = {
  name: 'make a part of memory in rows',
  weight: 3,
  run(world) {
    const model = world.pick(liveRows(world))
    if (model === undefined || world.part(allRows).length > 40) return undefined
    const from = (size: number): readonly [number, number] => {
      const start = world.random.integer(0, size - 1)
      return [start, world.random.integer(1, size - start)]
    }
    const [[x, width], [y, height], [z, depth]] = [from(model.box.width), from(model.box.height), from(model.box.depth)]
    const buffer = model.buffer.region({ x, y, z, width, height, depth })
    const { box } = model
    const name = world.name('rows')
    world
      .part(allRows)
      .push({ ...model, name, buffer, box: { x: box.x + x, y: box.y + y, z: box.z + z, width, height, depth } })
    return `${name} of ${model.name}`
  },
}

function someStream(world: World, { device }: RowsModel): StreamModel {
  return world.one(world.liveStreams(device))
}

const write: Operation = {
  name: 'write memory in rows',
  weight: 8,
  async run(world) {
    const model = world.pick(liveRows(world))
    if (model === undefined) return undefined
    const { buffer, dtype, block, box } = model
    const stream = someStream(world, model)
    const options = asOption(world, stream)
    const uses = [{ block, write: true }]
    const blocks = world.chance(0.3)
    const { length } = buffer
    const bytes = byteLengthOf(model, box)
    const told = `${model.name} on ${stream.name}`
    const others = liveRows(world).filter(
      (other) =>
        other.block !== block &&
        other.dtype === dtype &&
        other.device === model.device &&
        (['width', 'height', 'depth'] as const).every((key) => other.box[key] === box[key]),
    )
    const other = world.pick(others)
    const memory = world.pick(world.liveMemories(dtype, length).filter(({ root }) => root.device === model.device))
    const way = world.random.integer(0, 3)
    let result: Expected
    if (way === 0) {
      await world.order(stream.queue, uses)
      const [value] = world.values(dtype, 1)
      buffer[blocks ? 'fillSync' : 'fill'](value as never, options)
      const filled = new arrays[dtype](length).fill(value as never)
      result = known(bytesOf(filled))
    } else if (way === 1 && other !== undefined) {
      uses.push({ block: other.block, write: false })
      await world.order(stream.queue, uses)
      buffer[blocks ? 'copyFromSync' : 'copyFrom'](other.buffer as never, options)
      result = expectedOf(other)
    } else if (way === 2 && memory !== undefined) {
      uses.push({ block: memory.root.block, write: false })
      await world.order(stream.queue, uses)
      buffer[blocks ? 'copyFromSync' : 'copyFrom'](memory.buffer as never, options)
      result = memory.root.block.expected(memory.offset, bytes)
    } else {
      await world.order(stream.queue, uses)
      const values = world.values(dtype, length)
      const rows = Array.from({ length: box.height * box.depth }, (_, row) =>
        values.slice(row * box.width, (row + 1) * box.width),
      )
      buffer[blocks ? 'copyFromSync' : 'copyFrom']((world.chance(0.3) ? rows : values) as never, options)
      result = known(bytesOf(values).slice())
    }
    world.use(stream.queue, uses)
    if (blocks) world.clocks.seen(stream.queue)
    setTo(model, result)
    return `${told}, way ${way}`
  },
}

const read: Operation = {
  name: 'read memory in rows',
  weight: 8,
  async run(world) {
    const model = world.pick(liveRows(world))
    if (model === undefined) return undefined
    const { buffer, dtype, block, box } = model
    const stream = someStream(world, model)
    const options = asOption(world, stream)
    const uses = [{ block, write: false }]
    const told = `${model.name} on ${stream.name}`
    const memory = world.pick(
      world.liveMemories(dtype, buffer.length).filter(({ root }) => root.device === model.device),
    )
    const way = world.random.integer(0, 4)
    if (way === 0 && memory !== undefined) {
      uses.push({ block: memory.root.block, write: true })
      await world.order(stream.queue, uses)
      buffer.copyInto(memory.buffer, options)
      world.use(stream.queue, uses)
      memory.root.block.copy(memory.offset, expectedOf(model))
      return `${told} into ${memory.name}`
    }
    await world.order(stream.queue, uses)
    const expected = expectedOf(model)
    if (way === 1) {
      const found = buffer.toArraySync(options)
      world.use(stream.queue, uses)
      world.clocks.seen(stream.queue)
      world.compare(told, bytesOf(found as ArrayBufferView), expected)
      return `${told}, blocking`
    }
    if (way === 2) {
      const [y, z] = [world.random.integer(0, box.height - 1), world.random.integer(0, box.depth - 1)]
      const width = byteLengthOf(model, { ...box, height: 1, depth: 1 })
      const at = (z * box.height + y) * width
      const promise = buffer.row(y, z).toArray(options)
      world.use(stream.queue, uses)
      const part = { bytes: expected.bytes.slice(at, at + width), defined: expected.defined.slice(at, at + width) }
      world.later(told, promise, (found: ArrayBufferView) => world.compare(told, bytesOf(found), part))
      return `row ${y}, ${z} of ${told}`
    }
    const isRows = way === 3
    const promise: Promise<unknown> = isRows ? buffer.toRows(options) : buffer.toArray(options)
    world.use(stream.queue, uses)
    world.later(told, promise, (found: ArrayBufferView | readonly ArrayBufferView[]) => {
      const parts = Array.isArray(found) ? (found as readonly ArrayBufferView[]) : [found as ArrayBufferView]
      world.compare(told, new Uint8Array(Buffer.concat(parts.map(bytesOf))), expected)
    })
    if (world.chance(0.15)) {
      await endWhole(world, model)
      return `${told}, disposed of at once`
    }
    return told
  },
}

async function endWhole(world: World, { whole, block, device }: RowsModel): Promise<void> {
  const uses = [block.lastWrite, ...block.reads].filter((use) => use !== undefined)
  if (uses.some(({ queue }) => queue.device !== device)) await world.order(undefined, [{ block, write: true }])
  if (world.chance(0.5)) whole.dispose()
  else await whole[Symbol.asyncDispose]()
}

const end: Operation = {
  name: 'dispose of memory in rows',
  weight: 3,
  async run(world) {
    const model = world.pick(liveRows(world))
    if (model === undefined) return undefined
    await endWhole(world, model)
    const { buffer, name } = model
    world.refused(`fill of ${name}`, () => buffer.fill(0 as never), [DisposedError])
    world.refused(`region of ${name}`, () => buffer.region({}), [DisposedError])
    await world.rejects(`toArray of ${name}`, buffer.toArray(), [DisposedError])
    return name
  },
}

export const rows: readonly Operation[] = [make, region, write, read, end]
