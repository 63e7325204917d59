/** Modules with their kernels and variables: loaded, launched, launched again as prepared launches, and unloaded. */
import type { Kernel, KernelSignature, PreparedLaunch } from '@shoal/driver'
import { DisposedError } from '@shoal/types'
import { spread } from '../arithmetic.js'
import type { Expected, Memory, ModelType } from '../memory.js'
import { Block, bytesOf } from '../memory.js'
import type { Operation } from '../operation.js'
import type { StreamModel, World } from '../world.js'
import { type Code, loadCode } from './code.js'
import { asOption, streamFor } from './transfers.js'

export interface ModuleModel {
  readonly name: string
  readonly module: Code
  readonly device: number
  /** Content of the variable `counter`. */
  readonly counter: Block
  readonly prepared: PreparedModel[]
}

interface PreparedModel {
  readonly launch: PreparedLaunch<typeof signatures.addEach>
  readonly memory: Memory
  readonly stream: StreamModel
  value: number
}

export const signatures = {
  addEach: ['ptr', 'u32', 'u32'],
  combine: ['ptr', 'ptr', 'u32'],
  reverse: ['ptr', 'u32'],
  countThreads: ['u32'],
  sample: ['texture', 'ptr', 'u32', 'u32'],
  store: ['surface', 'ptr', 'u32', 'u32'],
} as const satisfies Readonly<Record<string, KernelSignature>>

const modules = (): ModuleModel[] => []

export function liveModules(world: World, device?: number): ModuleModel[] {
  return world.part(modules).filter((one) => !one.module.disposed && (device === undefined || one.device === device))
}

const load: Operation = {
  name: 'load a module',
  weight: 6,
  async run(world) {
    if (liveModules(world).length > 3) return undefined
    const device = world.random.integer(0, world.devices.length - 1)
    const module = await loadCode(world, device)
    const counter = new Block(4)
    counter.write(0, new Uint8Array(4))
    const model = { name: world.name('module'), module, device, counter, prepared: [] }
    world.part(modules).push(model)
    world.cleanups.push(() => module.dispose())
    return `${model.name} on device ${device}`
  },
}

const unload: Operation = {
  name: 'dispose of a module',
  weight: 1,
  async run(world) {
    const model = world.pick(liveModules(world))
    if (model === undefined) return undefined
    const kernel = model.module.kernel('countThreads', signatures.countThreads)
    const counter = model.module.global('counter', 'u32')
    if (world.chance(0.5)) await world.synchronizeDevice(model.device)
    model.module.dispose()
    world.refused(`a launch of ${model.name}`, () => kernel.launch({ grid: 1, block: 1 }, 1), [DisposedError])
    world.refused(`a variable of ${model.name}`, () => counter.toArraySync(), [DisposedError])
    for (const { launch } of model.prepared)
      world.refused(`a prepared launch of ${model.name}`, () => launch.launch(), [DisposedError])
    return model.name
  },
}

/** Returns a grid and a block for `count` words: enough threads for all words, too few, or far too many. */
export function shapeFor(world: World, count: number): { readonly grid: number; readonly block: number } {
  const block = world.one([1, 7, 32, 64, 200])
  const grid = world.one([1, 2, Math.ceil(count / block), Math.ceil(count / block) + 3])
  return { grid: Math.min(grid, 64), block }
}

export function wordsOf(world: World, device: number, length?: number): Memory | undefined {
  const types: readonly ModelType[] = ['u32', 'i32']
  return world.pick(
    types.flatMap((dtype) => world.liveMemories(dtype, length)).filter(({ root }) => root.device === device),
  )
}

/** Returns content as words. A word is undefined if any of its bytes is undefined. */
function words(expected: Expected): { readonly values: Uint32Array; readonly expected: Expected } {
  const bytes = expected.bytes.slice()
  const defined = expected.defined.slice()
  spread(defined, 4)
  return { values: new Uint32Array(bytes.buffer), expected: { bytes, defined } }
}

/** Applies the work of a kernel to the model of its memory. */
export function change(memory: Memory, by: (values: Uint32Array, defined: Uint8Array) => void): void {
  const { block } = memory.root
  const { values, expected } = words(block.expected(memory.offset, memory.byteLength))
  by(values, expected.defined)
  block.copy(memory.offset, expected)
}

export const adding =
  (value: number) =>
  (values: Uint32Array): void => {
    for (const [index, word] of values.entries()) values[index] = word + value
  }

const launch: Operation = {
  name: 'launch a kernel',
  weight: 10,
  async run(world) {
    const model = world.pick(liveModules(world))
    if (model === undefined) return undefined
    const memory = wordsOf(world, model.device)
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const uses = [{ block: memory.root.block, write: true }]
    const { length } = memory
    const shape = shapeFor(world, length)
    const config = { ...shape, ...asOption(world, stream) }
    const { module } = model
    switch (world.random.integer(0, 3)) {
      case 0: {
        const value = world.random.word()
        await world.order(stream.queue, uses)
        module.kernel('addEach', signatures.addEach).launch(config, memory.buffer, value, length)
        world.use(stream.queue, uses)
        change(memory, adding(value))
        return `addEach of ${memory.name} on ${stream.name}`
      }
      case 1: {
        const source = wordsOf(world, model.device, length)
        // If the two overlapped, one thread would read words that another thread writes.
        if (source === undefined || source.root.block === memory.root.block) return undefined
        const both = [...uses, { block: source.root.block, write: false }]
        await world.order(stream.queue, both)
        module.kernel('combine', signatures.combine).launch(config, memory.buffer, source.buffer, length)
        world.use(stream.queue, both)
        const from = words(source.root.block.expected(source.offset, source.byteLength))
        change(memory, (values, defined) => {
          for (const [index, word] of from.values.entries())
            values[index] = Math.imul(values[index] as number, 3) + word
          for (const [index, isDefined] of from.expected.defined.entries()) defined[index]! &= isDefined
        })
        return `combine of ${memory.name} and ${source.name} on ${stream.name}`
      }
      case 2: {
        const grid = Math.ceil(length / shape.block)
        if (grid > 256) return undefined
        await world.order(stream.queue, uses)
        module.kernel('reverse', signatures.reverse).launch({ ...config, grid }, memory.buffer, length)
        world.use(stream.queue, uses)
        change(memory, (values, defined) => {
          for (let start = 0; start < length; start += shape.block) {
            const end = Math.min(start + shape.block, length)
            values.subarray(start, end).reverse()
            new Uint32Array(defined.buffer).subarray(start, end).reverse()
          }
        })
        return `reverse of ${memory.name} by ${shape.block} on ${stream.name}`
      }
      default: {
        const count = world.random.integer(0, 500)
        const counted = [{ block: model.counter, write: true }]
        await world.order(stream.queue, counted)
        module.kernel('countThreads', signatures.countThreads).launch(config, count)
        world.use(stream.queue, counted)
        const value = new Uint32Array(model.counter.bytes.slice().buffer)
        value[0]! += Math.min(count, shape.grid * shape.block)
        model.counter.write(0, bytesOf(value))
        return `countThreads of ${model.name} on ${stream.name}`
      }
    }
  },
}

const readVariable: Operation = {
  name: 'read a variable of a module',
  weight: 3,
  async run(world) {
    const model = world.pick(liveModules(world))
    if (model === undefined) return undefined
    const stream = world.one(world.liveStreams(model.device))
    const uses = [{ block: model.counter, write: false }]
    await world.order(stream.queue, uses)
    const expected = model.counter.expected(0, 4)
    const told = `counter of ${model.name} on ${stream.name}`
    const promise = model.module.global('counter', 'u32').toArray(asOption(world, stream))
    world.use(stream.queue, uses)
    world.later(told, promise, (found: ArrayBufferView) => world.compare(told, bytesOf(found), expected))
    return told
  },
}

const prepare: Operation = {
  name: 'prepare a launch',
  weight: 2,
  run(world) {
    const model = world.pick(liveModules(world))
    if (model === undefined || model.prepared.length > 3) return undefined
    const memory = wordsOf(world, model.device)
    if (memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const value = world.random.word()
    const config = { ...shapeFor(world, memory.length), stream: stream.stream }
    const kernel = model.module.kernel('addEach', signatures.addEach)
    const prepared = kernel.prepare(config, memory.buffer, value, memory.length)
    model.prepared.push({ launch: prepared, memory, stream, value })
    return `addEach of ${memory.name} on ${stream.name}`
  },
}

const launchPrepared: Operation = {
  name: 'make a prepared launch',
  weight: 6,
  async run(world) {
    const found = world.pick(liveModules(world).flatMap(({ prepared }) => prepared))
    if (found === undefined) return undefined
    const { launch: prepared, memory, stream } = found
    const told = `addEach of ${memory.name} on ${stream.name}`
    if (memory.root.disposed || stream.disposed) {
      world.refused(told, () => prepared.launch(), [DisposedError])
      return `${told}, refused`
    }
    const uses = [{ block: memory.root.block, write: true }]
    await world.order(stream.queue, uses)
    if (world.chance(0.5)) {
      found.value = world.random.word()
      prepared.set(1, found.value)
    }
    prepared.launch()
    world.use(stream.queue, uses)
    change(memory, adding(found.value))
    return told
  },
}

const refused: Operation = {
  name: 'launch what is refused',
  weight: 2,
  async run(world) {
    const model = world.pick(liveModules(world))
    if (model === undefined) return undefined
    const { module, device } = model
    const kernel = module.kernel('addEach', signatures.addEach) as unknown as Kernel
    const shape = { grid: 1, block: 32 }
    // Every device can use managed memory. A device may have been given access to mapped memory and to memory of pools.
    const away = world.pick(
      world.liveMemories().filter(({ root }) => root.device !== device && /^memory/.test(root.name)),
    )
    const gone = world.pick(world.memories.filter(({ root }) => root.disposed && root.device === device))
    const elsewhere = world.pick(world.liveStreams().filter((stream) => stream.device !== device))
    world.refused('a missing argument', () => kernel.launch(shape, null, 1), [TypeError])
    world.refused('a block too large', () => kernel.launch({ grid: 1, block: 1025 }, null, 1, 0), [RangeError])
    world.refused('a fraction', () => kernel.launch(shape, null, 0.5, 0), [TypeError])
    world.refused('a number out of range', () => kernel.launch(shape, null, 2 ** 32, 0), [RangeError])
    world.refused('another signature', () => module.kernel('addEach', ['ptr', 'u32']), [TypeError])
    if (away !== undefined)
      world.refused(`a launch with ${away.name}`, () => kernel.launch(shape, away.buffer, 1, 1), [TypeError])
    if (gone !== undefined)
      world.refused(`a launch with ${gone.name}`, () => kernel.launch(shape, gone.buffer, 1, 1), [DisposedError])
    if (elsewhere !== undefined) {
      const config = { ...shape, stream: elsewhere.stream }
      world.refused(`a launch on ${elsewhere.name}`, () => kernel.launch(config, null, 1, 0), [TypeError])
    }
    return model.name
  },
}

const launchWithGetter: Operation = {
  name: 'launch with a getter that ends or launches things',
  weight: 1,
  async run(world) {
    const model = world.pick(liveModules(world))
    const memory = model === undefined ? undefined : wordsOf(world, model.device)
    if (model === undefined || memory === undefined) return undefined
    const stream = streamFor(world, memory)
    const kernel = model.module.kernel('addEach', signatures.addEach)
    if (world.chance(0.5)) {
      const uses = [{ block: memory.root.block, write: true }]
      await world.order(stream.queue, uses)
      const shape = { grid: 1, block: 32 }
      const config = {
        ...shape,
        get stream() {
          kernel.launch({ ...shape, stream: stream.stream }, memory.buffer, 1, memory.length)
          return stream.stream
        },
      }
      kernel.launch(config, memory.buffer, 2, memory.length)
      world.use(stream.queue, uses)
      change(memory, adding(3))
      return `${memory.name}, launched twice`
    }
    const config = {
      grid: 1,
      block: 32,
      get stream() {
        model.module.dispose()
        return stream.stream
      },
    }
    await world.synchronizeDevice(model.device)
    world.refused('a launch', () => kernel.launch(config, memory.buffer, 2, 0), [DisposedError])
    return `${model.name}, disposed of`
  },
}

export const kernels: readonly Operation[] = [
  load,
  unload,
  launch,
  readVariable,
  prepare,
  launchPrepared,
  refused,
  launchWithGetter,
]
