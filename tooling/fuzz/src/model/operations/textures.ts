/** Arrays of texels, and the textures and surfaces through which kernels access them. */
import { type ArrayFormat, CudaArray, MipmappedArray, SurfaceObject, TextureObject } from '@shoal/driver/texture'
import * as runtime from '@shoal/runtime/texture'
import { DisposedError } from '@shoal/types'
import { spread } from '../arithmetic.js'
import { arrays, Block, bytesOf, type Expected, type ModelType } from '../memory.js'
import type { Operation } from '../operation.js'
import type { World } from '../world.js'
import { liveModules, shapeFor, signatures, wordsOf } from './kernels.js'
import { memoryOf } from './making.js'
import { asOption } from './transfers.js'

interface ArrayModel {
  readonly name: string
  readonly array: CudaArray
  /** The object to dispose of: the array itself, or the mipmapped array that contains it. */
  readonly whole: CudaArray | MipmappedArray
  readonly dtype: ModelType
  readonly channels: number
  readonly device: number
  readonly sizes: readonly [width: number, height: number, depth: number]
  readonly block: Block
}

interface LookModel {
  readonly name: string
  readonly look: TextureObject | SurfaceObject
  readonly width: number
  readonly height: number
  readonly device: number
  readonly block: Block
  /** Offset of the first texel in the block, in bytes. */
  readonly offset: number
  /** The object that the texture or surface reads. */
  readonly source: { readonly disposed: boolean }
}

const allArrays = (): ArrayModel[] => []
const allLooks = (): LookModel[] => []
const formats = ['u8', 'i8', 'u16', 'u32', 'i32', 'f32'] as const satisfies readonly (ArrayFormat & ModelType)[]

function liveArrays(world: World): ArrayModel[] {
  return world.part(allArrays).filter(({ array }) => !array.disposed)
}

const make: Operation = {
  name: 'make an array of texels',
  weight: 4,
  run(world) {
    if (liveArrays(world).length > 8) return undefined
    const device = world.random.integer(0, world.devices.length - 1)
    // Kernels of the model read and write words.
    const format = world.chance(0.5) ? 'u32' : world.one(formats)
    const channels = world.one([1, 1, 2, 4] as const)
    const width = world.one([1, 4, 8, 33, 64])
    const height = world.one([undefined, 1, 5, 16])
    const depth = height === undefined ? undefined : world.one([undefined, undefined, 3])
    const options = { format, channels, width, height, depth, surface: world.chance(0.5) }
    const withRuntime = world.chance(0.3)
    const option = { device: world.runtimeDevices[device] as never }
    const owner = world.devices[device] as never
    const add = (array: CudaArray, whole: ArrayModel['whole']): string => {
      const sizes = [array.width, array.height, array.depth] as const
      const { BYTES_PER_ELEMENT: bytes } = arrays[format]
      const block = new Block(sizes[0] * sizes[1] * sizes[2] * channels * bytes)
      const name = world.name('array')
      world.part(allArrays).push({ name, array, whole, dtype: format, channels, device, sizes, block })
      return `${name}: ${format} × ${channels}, ${sizes.join(' × ')}`
    }
    if (world.chance(0.2)) {
      const mipmapped = withRuntime
        ? runtime.MipmappedArray.create({ ...options, ...option })
        : MipmappedArray.create(owner, options)
      world.cleanups.push(() => mipmapped.dispose())
      const levels = Math.min(mipmapped.levels, 3)
      return Array.from({ length: levels }, (_, index) => add(mipmapped.level(index), mipmapped)).join(', ')
    }
    const array = withRuntime ? runtime.CudaArray.create({ ...options, ...option }) : CudaArray.create(owner, options)
    world.cleanups.push(() => array.dispose())
    return add(array, array)
  },
}

const known = (bytes: Uint8Array): Expected => ({ bytes, defined: new Uint8Array(bytes.length).fill(1) })

const write: Operation = {
  name: 'write texels',
  weight: 7,
  async run(world) {
    const model = world.pick(liveArrays(world))
    if (model === undefined) return undefined
    const { array, block, dtype, device, channels, sizes } = model
    const stream = world.one(world.liveStreams(device))
    const options = asOption(world, stream)
    const uses = [{ block, write: true }]
    const [width, height, depth] = sizes
    const length = width * height * depth * channels
    const blocks = world.chance(0.3)
    const copy = (source: unknown): unknown => array[blocks ? 'copyFromSync' : 'copyFrom'](source as never, options)
    const memory = world.pick(world.liveMemories(dtype, length).filter(({ root }) => root.device === device))
    const other = world.pick(
      liveArrays(world).filter(
        (one) =>
          one.block !== block &&
          one.device === device &&
          one.dtype === dtype &&
          one.channels === channels &&
          one.array.dimensions === array.dimensions &&
          one.sizes.every((size, index) => size === sizes[index]),
      ),
    )
    const way = world.random.integer(0, 3)
    let result: Expected
    if (way === 0 && memory !== undefined) {
      uses.push({ block: memory.root.block, write: false })
      await world.order(stream.queue, uses)
      copy(memory.buffer)
      result = memory.root.block.expected(memory.offset, memory.byteLength)
    } else if (way === 1 && other !== undefined) {
      uses.push({ block: other.block, write: false })
      await world.order(stream.queue, uses)
      copy(other.array)
      result = other.block.expected(0, other.block.bytes.length)
    } else if (way === 2) {
      // Copies one row of one slice.
      await world.order(stream.queue, uses)
      const [y, z] = [world.random.integer(0, height - 1), world.random.integer(0, depth - 1)]
      const row = world.values(dtype, width * channels)
      array.copyFrom(row as never, { ...options, region: { y, z, height: 1, depth: 1 } })
      world.use(stream.queue, uses)
      block.write((z * height + y) * row.byteLength, bytesOf(row))
      return `row ${y}, ${z} of ${model.name} on ${stream.name}`
    } else {
      await world.order(stream.queue, uses)
      const values = world.values(dtype, length)
      copy(values)
      result = known(bytesOf(values))
    }
    world.use(stream.queue, uses)
    if (blocks) world.clocks.seen(stream.queue)
    block.copy(0, result)
    return `${model.name} on ${stream.name}, way ${way}`
  },
}

const read: Operation = {
  name: 'read texels',
  weight: 7,
  async run(world) {
    const model = world.pick(liveArrays(world))
    if (model === undefined) return undefined
    const { array, block, dtype, device, name } = model
    const stream = world.one(world.liveStreams(device))
    const options = asOption(world, stream)
    const uses = [{ block, write: false }]
    const { BYTES_PER_ELEMENT: bytes } = arrays[dtype]
    const told = `${name} on ${stream.name}`
    const memory = world.pick(
      world.liveMemories(dtype, block.bytes.length / bytes).filter(({ root }) => root.device === device),
    )
    const expected = block.expected(0, block.bytes.length)
    if (memory !== undefined && world.chance(0.3)) {
      uses.push({ block: memory.root.block, write: true })
      await world.order(stream.queue, uses)
      array.copyToMemory(memory.buffer, options)
      world.use(stream.queue, uses)
      memory.root.block.copy(memory.offset, expected)
      return `${told} to ${memory.name}`
    }
    await world.order(stream.queue, uses)
    if (world.chance(0.3)) {
      const found = array.copyToSync(new arrays[dtype](block.bytes.length / bytes) as never, options)
      world.use(stream.queue, uses)
      world.clocks.seen(stream.queue)
      world.compare(told, bytesOf(found), expected)
      return `${told}, blocking`
    }
    const promise = array.toArray(options)
    world.use(stream.queue, uses)
    world.later(told, promise, (found: ArrayBufferView) => world.compare(told, bytesOf(found), expected))
    if (world.chance(0.15)) {
      await endArray(world, model)
      return `${told}, disposed of at once`
    }
    return told
  },
}

async function endArray(world: World, { whole, block, device }: ArrayModel): Promise<void> {
  const uses = [block.lastWrite, ...block.reads].filter((use) => use !== undefined)
  if (uses.some(({ queue }) => queue.device !== device)) await world.order(undefined, [{ block, write: true }])
  if (world.chance(0.5)) whole.dispose()
  else await whole[Symbol.asyncDispose]()
}

/** Returns true if kernels of the model can access the array, because it has two dimensions of 32-bit words. */
function isPlane({ array, dtype, channels }: ArrayModel): boolean {
  return (dtype === 'u32' || dtype === 'i32') && channels === 1 && array.dimensions === 2
}

const look: Operation = {
  name: 'make a texture or a surface',
  weight: 4,
  run(world) {
    const list = world.part(allLooks)
    if (list.filter((one) => !one.look.disposed).length > 6) return undefined
    const add = (made: TextureObject | SurfaceObject, parts: Omit<LookModel, 'name' | 'look'>): string => {
      const name = world.name(made instanceof TextureObject ? 'texture' : 'surface')
      list.push({ name, look: made, ...parts })
      world.cleanups.push(() => made.dispose())
      return name
    }
    if (world.chance(0.3)) {
      const memory = world.pick(
        world
          .liveMemories()
          .filter(
            ({ name, root, dtype, length, offset }) =>
              name === root.name && /^memory/.test(name) && /^[iu]32$/.test(dtype) && length % 8 === 0 && offset === 0,
          ),
      )
      if (memory === undefined) return undefined
      const width = 8
      const height = memory.length / width
      const texture = TextureObject.create({ memory: memory.buffer, width, height, pitch: 4 * width })
      const { device, block, object } = memory.root
      const source = object as LookModel['source']
      return `${add(texture, { width, height, device, block, offset: 0, source })} of ${memory.name}`
    }
    const model = world.pick(liveArrays(world).filter(isPlane))
    if (model === undefined) return undefined
    const { array, device, block, sizes } = model
    const [width, height] = sizes
    const isSurface = array.surface && world.chance(0.5)
    const made = isSurface ? SurfaceObject.create(array) : TextureObject.create(array)
    return `${add(made, { width, height, device, block, offset: 0, source: array })} of ${model.name}`
  },
}

const sample: Operation = {
  name: 'look through a texture or a surface',
  weight: 10,
  async run(world) {
    const model = world.pick(world.part(allLooks).filter((one) => !one.look.disposed || world.chance(0.1)))
    if (model === undefined) return undefined
    const { device, block, width, height, source } = model
    const module = world.pick(liveModules(world, device))
    if (module === undefined) return undefined
    const memory = wordsOf(world, device) ?? memoryOf(world, device, 'u32', 16, [])
    if (memory.root.block === block) return undefined
    const stream = world.one(world.liveStreams(device))
    const count = Math.min(memory.length, width * height)
    const config = { ...shapeFor(world, count), ...asOption(world, stream) }
    const isTexture = model.look instanceof TextureObject
    const told = `${model.name} and ${memory.name} on ${stream.name}`
    const launch = (): void => {
      if (model.look instanceof TextureObject)
        module.module.kernel('sample', signatures.sample).launch(config, model.look, memory.buffer, width, count)
      else module.module.kernel('store', signatures.store).launch(config, model.look, memory.buffer, width, count)
    }
    if (model.look.disposed || source.disposed) {
      world.refused(told, launch, [DisposedError])
      return `${told}, refused`
    }
    const uses = [
      { block: memory.root.block, write: isTexture },
      { block, write: !isTexture },
    ]
    await world.order(stream.queue, uses)
    launch()
    world.use(stream.queue, uses)
    const [to, toOffset, from, fromOffset] = isTexture
      ? [memory.root.block, memory.offset, block, model.offset]
      : [block, model.offset, memory.root.block, memory.offset]
    const words = from.expected(fromOffset, 4 * count)
    spread(words.defined, 4)
    to.copy(toOffset, words)
    if (world.chance(0.1)) {
      // The object waits for the kernel.
      model.look.dispose()
      return `${told}, disposed of at once`
    }
    return told
  },
}

const end: Operation = {
  name: 'dispose of texels',
  weight: 3,
  async run(world) {
    const looks = world.part(allLooks).filter((one) => !one.look.disposed)
    const chosen: LookModel | ArrayModel | undefined = world.pick([...looks, ...liveArrays(world)])
    if (chosen === undefined) return undefined
    if ('look' in chosen) {
      if (world.chance(0.5)) chosen.look.dispose()
      else await chosen.look[Symbol.asyncDispose]()
      world.refused(`handle of ${chosen.name}`, () => chosen.look.handle, [DisposedError])
      return chosen.name
    }
    await endArray(world, chosen)
    const { array, name } = chosen
    world.equal(`whether ${name} is disposed of`, array.disposed, true)
    world.refused(`handle of ${name}`, () => array.handle, [DisposedError])
    world.refused(`a texture of ${name}`, () => TextureObject.create(array), [DisposedError])
    return name
  },
}

export const textures: readonly Operation[] = [make, write, read, look, sample, end]
