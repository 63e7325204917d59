/** All calls that a capture records, with the objects that they use. */
import { closeSync, ftruncateSync, mkdtempSync, openSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Stream } from '@shoal/driver'
import { device, second } from './graphObjects.js'

const {
  AddressRange,
  allocationGranularity,
  CachingPool,
  DeviceBuffer,
  Event,
  GrowableBuffer,
  ManagedBuffer,
  MemoryPool,
} = await import('@shoal/driver')
const { Module, PhysicalMemory, PinnedBuffer, prepareCopies, RegisteredBuffer } = await import('@shoal/driver')
const { discardBatch, PitchedBuffer, prefetchBatch, prepareCopies3D } = await import('@shoal/driver/memory')
const { CudaArray, SurfaceObject, TensorMap, TextureObject } = await import('@shoal/driver/texture')
const { ExternalSemaphore, signalSemaphores, waitSemaphores } = await import('@shoal/driver/external')
const { fromDLPack, toDLPack } = await import('@shoal/driver/dlpack')
const { memoryProtocol } = await import('@shoal/types')

/** A captured call, ready to run. */
export interface MadeCall {
  readonly call: (stream: Stream) => unknown
  /** The used objects, by the name in `DisposedError.object` after their disposal. */
  readonly uses: readonly (readonly [name: string | RegExp, object: Disposable])[]
  /** Whether the call uses views. Views outlive the objects that created them. */
  readonly isOfViews?: boolean
}

const code = `
.version 8.5
.target sm_90
.address_size 64
.visible .entry touch(.param .u64 at) { ret; }
.visible .entry look(.param .u64 object) { ret; }
.visible .entry map(.param .align 64 .b8 object[128]) { ret; }
`
const one = { grid: 1, block: 1 } as const
const loaded = (): import('@shoal/driver').Module => Module.loadSync(device, code)
const zeros = (length = 4): import('@shoal/driver').DeviceBuffer<'u32'> => DeviceBuffer.zeros(device, 'u32', length)
const pinned = (): import('@shoal/driver').PinnedBuffer<'u32'> => PinnedBuffer.allocate(device, 'u32', 4)
const array = () => CudaArray.create(device, { width: 4, format: 'u32', surface: true })
const pitched = () => PitchedBuffer.zeros(device, 'u32', { width: 4, height: 1 })
const named = <T extends Disposable>(object: T, name?: string | RegExp) =>
  [name ?? (object as unknown as { readonly kind: string }).kind, object] as const

type Tensor = import('@shoal/driver/dlpack').DLPackTensor

const folder = mkdtempSync(join(tmpdir(), 'shoal-captured-'))
function semaphore(): import('@shoal/driver/external').ExternalSemaphore {
  const descriptor = openSync(join(folder, 'timeline'), 'w+')
  ftruncateSync(descriptor, 8)
  try {
    return ExternalSemaphore.import(device, { type: 'timeline-fd', handle: descriptor })
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

/** Memory of another library, with a new protocol answer each time. It reports its end with its own kind of error. */
class ForeignMemory {
  readonly kind = 'ForeignMemory'
  readonly #buffer = zeros()
  #isGone = false
  get [memoryProtocol]() {
    const { address, byteLength } = this.#buffer
    // Another address means memory that was allocated again.
    return { version: 0, address: this.#isGone ? address + 4n : address, byteLength, deviceOrdinal: 0, context: 0n }
  }
  [Symbol.dispose](): void {
    this.#isGone = true
  }
}

/**
 * Calls by function and kind of argument. A function that queues work but is missing here fails
 * `capturedCalls.test.ts`.
 */
export const capturedCalls: { readonly [name: string]: () => MadeCall } = {
  'Kernel.launch with memory': () => {
    const [module, memory, host] = [loaded(), zeros(), pinned()]
    const kernel = module.kernel('touch', ['ptr'])
    return {
      call: (stream) => {
        kernel.launch({ ...one, stream }, memory)
        kernel.launch({ ...one, stream }, host)
      },
      uses: [named(module), named(memory), named(host)],
    }
  },
  'Kernel.launch with a slice': () => {
    const memory = zeros()
    const kernel = loaded().kernel('touch', ['ptr'])
    return {
      call: (stream) => kernel.launch({ ...one, stream }, memory.slice(1, 2).reinterpret('f32')),
      uses: [named(memory)],
      isOfViews: true,
    }
  },
  'Kernel.launch with memory of another library': () => {
    const memory = new ForeignMemory()
    const kernel = loaded().kernel('touch', ['ptr'])
    return {
      call: (stream) => kernel.launch({ ...one, stream }, memory as never),
      uses: [named(memory, /ForeignMemory/)],
    }
  },
  'Kernel.launch with mapped memory': () => {
    const bytes = allocationGranularity(device)
    const mapped = AddressRange.reserve(bytes).map(PhysicalMemory.create(device, bytes))
    const growing = GrowableBuffer.reserve(device, 'u32', { maximumLength: 4, length: 4 })
    const managed = ManagedBuffer.allocate(device, 'u32', 4)
    const kernel = loaded().kernel('touch', ['ptr'])
    return {
      call: (stream) => {
        for (const memory of [mapped, growing, managed]) kernel.launch({ ...one, stream }, memory)
        kernel.launch({ ...one, stream }, DeviceBuffer.view(device, growing, 'u32', { length: 2 }))
      },
      uses: [named(mapped), named(growing, /Growable|memory/), named(managed)],
    }
  },
  'Kernel.launch with textures, surfaces and tensor maps': () => {
    const [texels, memory] = [array(), zeros()]
    const [texture, surface] = [TextureObject.create(texels), SurfaceObject.create(texels)]
    const module = loaded()
    return {
      call: (stream) => {
        module.kernel('look', ['texture']).launch({ ...one, stream }, texture)
        module.kernel('look', ['surface']).launch({ ...one, stream }, surface)
        const map = TensorMap.tiled(memory, { dimensions: [4, 1], box: [4, 1] })
        module.kernel('map', ['tensorMap']).launch({ ...one, stream }, map)
      },
      uses: [named(texels), named(texture), named(surface), named(memory), named(module)],
    }
  },
  'Kernel.launch with a DLPack view': () => {
    const memory = zeros()
    const tensor = fromDLPack(toDLPack(memory))
    const kernel = loaded().kernel('touch', ['ptr'])
    return { call: (stream) => kernel.launch({ ...one, stream }, tensor), uses: [named(tensor)] }
  },
  'Kernel.launch with attributes': () => {
    const event = Event.create(device)
    const kernel = loaded().kernel('touch', ['ptr']).with({ launchCompletionEvent: event })
    return { call: (stream) => kernel.launch({ ...one, stream }, null), uses: [named(event)] }
  },
  'PreparedLaunch.launch': () => {
    const [module, memory, later] = [loaded(), zeros(), zeros()]
    const prepared = module.kernel('touch', ['ptr']).prepare({ ...one }, memory)
    return {
      call: (stream) => {
        const own = module.kernel('touch', ['ptr']).prepare({ ...one, stream }, memory)
        own.launch()
        own.set(0, later).launch()
        void prepared
      },
      uses: [named(module), named(memory), named(later)],
    }
  },
  'DeviceBuffer.fill': () => {
    const memory = zeros()
    return { call: (stream) => memory.fill(7, { stream }), uses: [named(memory)] }
  },
  'DeviceBuffer.copyFrom': () => {
    const [to, from, host] = [zeros(), zeros(), pinned()]
    const bytes = new Uint32Array(4)
    const registered = RegisteredBuffer.register(device, bytes.buffer)
    return {
      call: (stream) => {
        to.copyFrom(from, { stream })
        to.copyFrom(host.array, { stream })
        to.slice(0, 2).copyFrom(bytes.subarray(2), { stream })
      },
      uses: [named(to), named(from), named(host), named(registered)],
    }
  },
  'DeviceBuffer.copyFrom another device': () => {
    const [to, from] = [zeros(), DeviceBuffer.zeros(second, 'u32', 4)]
    return { call: (stream) => to.copyFrom(from, { stream }), uses: [named(to), named(from)] }
  },
  'DeviceBuffer.copyTo': () => {
    const [from, host] = [zeros(), pinned()]
    return { call: (stream) => void from.copyTo(host.array, { stream }), uses: [named(from), named(host)] }
  },
  'PitchedBuffer.fill': () => {
    const memory = pitched()
    return {
      call: (stream) => memory.region({ x: 1, width: 2 }).fill(7, { stream }),
      uses: [named(memory, /Buffer/)],
      isOfViews: true,
    }
  },
  'PitchedBuffer.copyFrom': () => {
    const [to, from, flat, host] = [pitched(), pitched(), zeros(), pinned()]
    return {
      call: (stream) => {
        to.copyFrom(from, { stream })
        to.copyFrom(flat, { stream })
        to.copyFrom(host.array, { stream })
      },
      uses: [named(to), named(from), named(flat), named(host)],
    }
  },
  'PitchedBuffer.copyFrom and copyInto with strides': () => {
    const [rows, from, to] = [pitched(), pitched(), pitched()]
    const [source, target] = [from, to].map((each) => fromDLPack(toDLPack(each))) as [Tensor, Tensor]
    return {
      call: (stream) => rows.copyFrom(source, { stream }).copyInto(target, { stream }),
      uses: [named(rows), named(source), named(target)],
    }
  },
  'PitchedBuffer.copyTo': () => {
    const [from, host] = [pitched(), pinned()]
    return { call: (stream) => void from.copyTo(host.array, { stream }), uses: [named(from), named(host)] }
  },
  'PitchedBuffer.copyInto': () => {
    const [from, to] = [pitched(), zeros()]
    return { call: (stream) => from.copyInto(to, { stream }), uses: [named(from), named(to)] }
  },
  'CudaArray.copyFrom': () => {
    const [to, from, memory, host] = [array(), array(), zeros(), pinned()]
    return {
      call: (stream) => {
        to.copyFrom(from, { stream })
        to.copyFrom(memory, { stream })
        to.copyFrom(host, { stream })
      },
      uses: [named(to), named(from), named(memory), named(host)],
    }
  },
  'CudaArray.copyTo': () => {
    const [from, host] = [array(), pinned()]
    return { call: (stream) => void from.copyTo(host, { stream }), uses: [named(from), named(host)] }
  },
  'CudaArray.copyToMemory': () => {
    const [from, to] = [array(), zeros()]
    return { call: (stream) => from.copyToMemory(to, { stream }), uses: [named(from), named(to)] }
  },
  'Stream.use': () => {
    const memory = zeros()
    return { call: (stream) => stream.use(() => memory.fill(7)), uses: [named(memory)] }
  },
  'Stream.memoryOperations': () => {
    const [flag, other] = [zeros(1), zeros(1)]
    return {
      call: (stream) =>
        stream.memoryOperations([
          { operation: 'write', memory: flag, value: 1 },
          { operation: 'wait', memory: other, value: 0 },
        ]),
      uses: [named(flag), named(other)],
    }
  },
  'Stream.writeValue': () => {
    const flag = zeros(1)
    return { call: (stream) => stream.writeValue(flag, 1), uses: [named(flag)] }
  },
  'Stream.waitValue': () => {
    const flag = zeros(1)
    return { call: (stream) => stream.waitValue(flag, 0), uses: [named(flag)] }
  },
  'Stream.record': () => {
    const event = Event.create(device)
    return { call: (stream) => stream.record(event, { external: true }), uses: [named(event)] }
  },
  'Stream.waitEvent': () => {
    const event = Event.create(device)
    return { call: (stream) => stream.waitEvent(event, { external: true }), uses: [named(event)] }
  },
  'Event.record': () => {
    const event = Event.create(device)
    return { call: (stream) => event.record(stream, { external: true }), uses: [named(event)] }
  },
  signalSemaphores: () => {
    const made = semaphore()
    return { call: (stream) => signalSemaphores([{ semaphore: made, value: 1 }], { stream }), uses: [named(made)] }
  },
  waitSemaphores: () => {
    const made = semaphore()
    return { call: (stream) => waitSemaphores([{ semaphore: made, value: 0 }], { stream }), uses: [named(made)] }
  },
  'PreparedCopies.launch': () => {
    const [to, from, host, rows, texels] = [zeros(), zeros(), pinned(), pitched(), array()]
    const copies = prepareCopies(device, [
      { target: to, source: from },
      { target: zeros(), source: host },
    ])
    const copies3D = prepareCopies3D(device, [
      { target: rows, source: from },
      { target: texels, source: from },
    ])
    return {
      call: (stream) => {
        copies.launch({ stream })
        copies3D.launch({ stream })
      },
      uses: [named(to), named(from), named(host), named(rows), named(texels)],
    }
  },
  'ManagedBuffer.prefetch': () => {
    const memory = ManagedBuffer.allocate(device, 'u32', 4)
    return { call: (stream) => memory.prefetch(device, { stream }), uses: [named(memory)] }
  },
  'ManagedBuffer.attachTo': () => {
    const memory = ManagedBuffer.allocate(device, 'u32', 4)
    return { call: (stream) => memory.attachTo(stream), uses: [named(memory)] }
  },
  prefetchBatch: () => {
    const memory = ManagedBuffer.allocate(device, 'u32', 4)
    return { call: (stream) => prefetchBatch(device, [{ memory, place: device }], { stream }), uses: [named(memory)] }
  },
  discardBatch: () => {
    const memory = ManagedBuffer.allocate(device, 'u32', 4)
    return { call: (stream) => discardBatch(device, [memory], { stream }), uses: [named(memory)] }
  },
  'copies from and to memory of a host pool': () => {
    const pool = MemoryPool.create(device, { location: 'host' })
    const owner = device.createStream()
    const [memory, other] = [pool.allocate(owner, 'u32', 4), pool.allocate(owner, 'u32', 4)]
    const [target, host] = [zeros(), pinned()]
    owner.synchronizeSync()
    return {
      call: (stream) => {
        memory.copyFrom(target, { stream })
        target.copyFrom(memory, { stream })
        other.copyFrom(memory, { stream })
        memory.copyTo(host, { stream })
        memory.copyFrom(host, { stream })
      },
      uses: [named(memory), named(other), named(target), named(host)],
    }
  },
  'CachingPool.recordUse': () => {
    const owner = device.createStream({ nonBlocking: true })
    const pool = CachingPool.create(device)
    const memory = pool.allocate(owner, 'u32', 4)
    return { call: (stream) => pool.recordUse(memory, stream), uses: [named(memory)] }
  },
}

/** Functions with a stream that add no resource to a graph, or that cannot be captured. */
export const withoutNeeds: { readonly [name: string]: string } = {
  'CachingPool.allocate': 'refused in a capture',
  'Context.waitEvent': 'not captured by the driver',
  'CudaArray.copyFromSync': 'waits',
  'CudaArray.copyToSync': 'waits',
  'CudaArray.toArray': 'copies to an ordinary array',
  'DeviceBuffer.allocateOn': 'memory of the graph',
  'DeviceBuffer.copyFromSync': 'waits',
  'DeviceBuffer.copyToSync': 'waits',
  'DeviceBuffer.disposeOn': 'frees memory of the graph',
  'DeviceBuffer.fillSync': 'waits',
  'DeviceBuffer.toArray': 'copies to an ordinary array',
  'DeviceBuffer.toArraySync': 'waits',
  'GraphExec.launch': 'not captured by the driver',
  'GraphExec.upload': 'not captured by the driver',
  'GreenContext.waitEvent': 'not captured by the driver',
  'Graph.capture': 'begins a capture',
  'Kernel.maxActiveClusters': 'queues nothing',
  'Kernel.potentialClusterSize': 'queues nothing',
  'Kernel.prepare': 'queues nothing',
  'MemoryPool.allocate': 'memory of the graph',
  'MemoryPool.importPointer': 'queues nothing',
  'PitchedBuffer.copyFromSync': 'waits',
  'PitchedBuffer.copyToSync': 'waits',
  'PitchedBuffer.fillSync': 'waits',
  'PitchedBuffer.toArray': 'copies to an ordinary array',
  'PitchedBuffer.toArraySync': 'waits',
  'PitchedBuffer.toRows': 'copies to an ordinary array',
  'Stream.copyAttributes': 'queues nothing',
  'Stream.from': 'queues nothing',
  'Stream.hostFunction': 'the graph has the function itself',
  'Stream.inspectFacts': 'queues nothing',
  'Stream.query': 'queues nothing',
  'Stream.release': 'queues nothing',
  'Stream.setAttributes': 'queues nothing',
  'Stream.synchronize': 'waits',
  'Stream.synchronizeSync': 'waits',
  captureInfo: 'queues nothing',
  captureStatus: 'queues nothing',
  mapArrays: 'not captured by the driver',
}
