import { readFileSync } from 'node:fs'
import { number } from '@shoal/cli/bench'
import {
  AddressRange,
  allocationGranularity,
  CachingPool,
  type Device,
  DeviceBuffer,
  GrowableBuffer,
  ManagedBuffer,
  MemoryPool,
  Module,
  PhysicalMemory,
  PinnedBuffer,
  RegisteredBuffer,
} from '@shoal/driver'
import { CreatedContext } from '@shoal/driver/context'
import { Graph, UserObject } from '@shoal/driver/graph'
import { Library, Linker } from '@shoal/driver/library'
import { PitchedBuffer } from '@shoal/driver/memory'
import { CudaArray, MipmappedArray, SurfaceObject, TextureObject } from '@shoal/driver/texture'
import { atMost, type Bar } from './bars.js'
import { devicesFor } from './devices.js'
import { sleep } from './eventLoopRanks/delay.js'
import type { Outcome, RunOptions } from './options.js'

const timerEvery = 5
/** Milliseconds of each loop of awaits, and of the kernel. */
const [loopFor, busyFor] = [1000, 2000]

const ptx = `.version 7.0
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry spin(.param .u64 nanoseconds) {
  .reg .pred %p; .reg .u64 %start, %now, %wanted;
  ld.param.u64 %wanted, [nanoseconds];
  mov.u64 %start, %globaltimer;
again:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %p, %now, %wanted;
  @%p bra again;
  ret;
}
`

interface Lateness {
  readonly name: string
  readonly awaits: number
  readonly ticks: number
  /** Milliseconds by which the timer was late. */
  readonly percentile99: number
  readonly longest: number
  /**
   * The same in processor time of the thread, 99th percentile, in milliseconds. Excludes time that other programs used.
   */
  readonly ofProcessor: number
}

interface Ending {
  readonly name: string
  /** Milliseconds of the slowest dispose() among its objects, as the median of several sets. */
  readonly took: number
}

/**
 * Measures a timer during loops of awaits, and dispose() of every kind of object while a kernel runs on another stream.
 */
export async function benchNeverBlocks(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  const alone = await latenessBeside(
    'nothing but turns of the event loop',
    () => new Promise((resolve) => setImmediate(resolve)),
  )
  const late: Lateness[] = []
  for (const [name, call] of Object.entries(awaitables(device))) late.push(await latenessBeside(name, call))
  const endings = await endBesideKernel(device)
  console.log(`A timer of ${timerEvery} ms beside a loop of awaits on ${device.name}: milliseconds that it came late\n`)
  for (const { name, awaits, percentile99, longest, ofProcessor } of [alone, ...late]) {
    const times = `99th percentile ${number(percentile99)}, of processor time ${number(ofProcessor)}, longest ${number(longest)}`
    console.log(`${name.padEnd(44)} ${times}; ${awaits} awaits`)
  }
  console.log(`\ndispose() while a kernel of ${busyFor} ms runs on another stream, in milliseconds\n`)
  for (const { name, took } of endings) console.log(`${name.padEnd(44)} ${number(took)}`)
  const bars: Bar[] = [
    ...late.map(({ name, percentile99 }) => atMost(`timer beside ${name}, 99th percentile`, percentile99, 5, ' ms')),
    atMost('timer beside all of these, processor time', Math.max(...late.map((one) => one.ofProcessor)), 5, ' ms'),
    ...endings.map(({ name, took }) => atMost(`dispose() of ${name}`, took, 1, ' ms')),
  ]
  return { results: { device: device.name, software: device.isSoftware, alone, late, endings }, bars }
}

function awaitables(device: Device): { readonly [name: string]: () => PromiseLike<unknown> } {
  const stream = device.createStream({ nonBlocking: true })
  const event = stream.record()
  const buffer = DeviceBuffer.zeros(device, 'f32', 16_384)
  const pinned = PinnedBuffer.allocate(device, 'f32', 16_384)
  const pool = CachingPool.create(device)
  const array = new Float32Array(16_384)
  const busy = (call: () => PromiseLike<unknown>) => (): PromiseLike<unknown> => {
    for (let i = 0; i < 4; i += 1) buffer.fill(i, { stream })
    return call()
  }
  const idle = {
    'Stream.synchronize': () => stream.synchronize(),
    'Event.synchronize': () => event.synchronize(),
    'Context.synchronize': () => device.primaryContext.synchronize(),
    'Device.synchronize': () => device.synchronize(),
    'Stream.hostFunction': () => stream.hostFunction(() => undefined),
    'DeviceBuffer.toArray': () => buffer.toArray({ stream }),
    'DeviceBuffer.copyTo an array': () => buffer.copyTo(array, { stream }),
    'DeviceBuffer.copyTo page-locked memory': () => buffer.copyTo(pinned, { stream }),
    'CachingPool.trim': () => pool.trim(),
  }
  return {
    ...Object.fromEntries(Object.entries(idle).map(([name, call]) => [`${name}, idle`, call])),
    ...Object.fromEntries(Object.entries(idle).map(([name, call]) => [`${name}, busy`, busy(call)])),
    'Event.synchronize of new work': busy(() => stream.record(event).synchronize()),
    'Module.load': async () => (await Module.load(device, ptx)).dispose(),
    'Library.load': async () => (await Library.load(device, ptx)).dispose(),
    'await using of a DeviceBuffer': () => DeviceBuffer.allocate(device, 'u8', 1024)[Symbol.asyncDispose](),
    'await using of a Stream': () => device.createStream({ nonBlocking: true })[Symbol.asyncDispose](),
  }
}

async function latenessBeside(name: string, call: () => PromiseLike<unknown>): Promise<Lateness> {
  for (let i = 0; i < 100; i += 1) await call()
  await sleep(20)
  const [late, lateOfProcessor]: [number[], number[]] = [[], []]
  let [before, usedBefore] = [performance.now(), processorTime()]
  const note = (): void => {
    const [now, used] = [performance.now(), processorTime()]
    late.push(Math.max(0, now - before - timerEvery))
    lateOfProcessor.push(Math.max(0, used - usedBefore - timerEvery))
    ;[before, usedBefore] = [now, used]
  }
  const timer = setInterval(note, timerEvery)
  let awaits = 0
  for (const end = performance.now() + loopFor; performance.now() < end; awaits += 1) await call()
  // Also counts a delay that lasts until the end of the loop.
  note()
  clearInterval(timer)
  const [percentile99, ofProcessor] = [percentile(late, 0.99), percentile(lateOfProcessor, 0.99)]
  return { name, awaits, ticks: late.length, percentile99, longest: Math.max(...late), ofProcessor }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

/** Milliseconds of processor time that the main thread has used. */
function processorTime(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6
}

type Made = readonly { dispose(): void }[]

/** Creates the objects of each kind, the owner last. */
function kinds(device: Device): { readonly [name: string]: () => Made } {
  const unit = allocationGranularity(device)
  const image = { width: 64, height: 64, format: 'f32' } as const
  return {
    Stream: () => [device.createStream()],
    Event: () => [device.createEvent()],
    DeviceBuffer: () => [DeviceBuffer.allocate(device, 'u8', 2 ** 20)],
    'DeviceBuffer.allocateOn': () => [DeviceBuffer.allocateOn(device.defaultStream, 'u8', 2 ** 20)],
    PitchedBuffer: () => [PitchedBuffer.allocate(device, 'u8', { width: 300, height: 50 })],
    ManagedBuffer: () => [ManagedBuffer.allocate(device, 'u8', 2 ** 20)],
    PinnedBuffer: () => [PinnedBuffer.allocate(device, 'u8', 2 ** 20)],
    RegisteredBuffer: () => [RegisteredBuffer.register(device, new ArrayBuffer(2 ** 16))],
    GrowableBuffer: () => [GrowableBuffer.reserve(device, 'u8', { maximumLength: 2 * unit, length: 10 })],
    MappedRange: () => {
      const [range, memory] = [AddressRange.reserve(unit), PhysicalMemory.create(device, unit)]
      return [range.map(memory), memory, range]
    },
    MemoryPool: () => [MemoryPool.create(device)],
    CachingPool: () => {
      const [pool, stream] = [CachingPool.create(device), device.createStream()]
      return [pool.allocate(stream, 'u8', 2 ** 20), pool, stream]
    },
    CreatedContext: () => [CreatedContext.create(device)],
    Module: () => [Module.loadSync(device, ptx)],
    Library: () => [Library.loadSync(device, ptx)],
    Linker: () => [Linker.create(device).add(ptx)],
    'Graph and GraphExec': () => {
      const graph = Graph.create(device)
      return [graph.instantiate(), graph]
    },
    UserObject: () => [UserObject.create(() => undefined)],
    CudaArray: () => [CudaArray.create(device, image)],
    MipmappedArray: () => [MipmappedArray.create(device, { ...image, levels: 2 })],
    TextureObject: () => {
      const array = CudaArray.create(device, image)
      return [TextureObject.create(array), array]
    },
    SurfaceObject: () => {
      const array = CudaArray.create(device, { ...image, surface: true })
      return [SurfaceObject.create(array), array]
    },
  }
}

async function endBesideKernel(device: Device): Promise<Ending[]> {
  using module = Module.loadSync(device, ptx)
  const stream = device.createStream({ nonBlocking: true })
  const spin = module.kernel('spin', ['u64'])
  const all: [string, readonly Made[]][] = []
  // Run each dispose() first, so that V8 has compiled it, as in a long-running program.
  for (let round = 0; round < 20; round += 1)
    for (const make of Object.values(kinds(device))) for (const one of make()) one.dispose()
  await sleep(50)
  for (const [name, make] of Object.entries(kinds(device))) all.push([name, [make(), make(), make()]])
  await device.synchronize()
  spin.launch({ grid: 1, block: 1, stream }, BigInt(busyFor) * 1_000_000n)
  const endings = all.map(([name, several]): Ending => {
    const longest = several.map((made) => {
      const times = made.map((one) => {
        const start = performance.now()
        one.dispose()
        return performance.now() - start
      })
      return Math.max(...times)
    })
    return { name, took: percentile(longest, 0.5) }
  })
  // If a dispose() had waited for the kernel, the later ones would have been fast.
  if (stream.query()) throw new Error(`the kernel of ${busyFor} ms ended before everything was disposed of`)
  await stream.synchronize()
  stream.dispose()
  return endings
}
