import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { DisposedError, defineStruct, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { add, device, firstOf, one, stream, zeros } from './support/graphObjects.js'

const { DeviceBuffer, Event, GrowableBuffer, ManagedBuffer, Module, PinnedBuffer } = await import('@shoal/driver')
const { captureStatus, copyNode, fillNode, Graph, kernelNode } = await import('@shoal/driver/graph')
const textures = await import('@shoal/driver/texture')
const { DeviceResource, GreenContext } = await import('@shoal/driver/context')
const { PitchedBuffer } = await import('@shoal/driver/memory')
const { Library, Linker } = await import('@shoal/driver/library')
const { cuStreamBeginCapture, cuStreamEndCapture } = await import('@shoal/cuda-sys/driver')

/** Whether an error is one of this package instead of one that JavaScript throws by itself. */
const isTyped = (error: unknown): boolean =>
  error instanceof StatusError || error instanceof DisposedError || /^[A-Z]\w*[.:]/.test((error as Error).message)

describe('a stream during capture', () => {
  const buffer = DeviceBuffer.zeros(device, 'f32', 16)
  const pitched = PitchedBuffer.zeros(device, 'f32', { width: 4, height: 4 })
  const array = textures.CudaArray.create(device, { width: 4, height: 4, format: 'f32' })
  const sparse = textures.CudaArray.create(device, { width: 256, height: 256, format: 'f32', sparse: true })
  const managed = ManagedBuffer.allocate(device, 'f32', 16)
  const event = Event.create(device)
  const floats = new Float32Array(16)
  const queued = { stream }
  // Calls that a capture cannot record, or that it forbids to its thread.
  const actions: { readonly [what: string]: () => unknown } = {
    'is waited for': () => stream.synchronizeSync(),
    'is waited for without blocking': () => stream.synchronize(),
    'is asked': () => stream.query(),
    'is waited for with its context': () => device.primaryContext.synchronizeSync(),
    'and memory': () => DeviceBuffer.allocate(device, 'u8', 1),
    'and memory of zeroes': () => DeviceBuffer.zeros(device, 'u8', 1),
    'and managed memory': () => ManagedBuffer.allocate(device, 'u8', 1),
    'and page-locked memory': () => PinnedBuffer.allocate(device, 'u8', 1),
    'and rows': () => PitchedBuffer.allocate(device, 'f32', { width: 4, height: 4 }),
    'and an array': () => textures.CudaArray.create(device, { width: 4, format: 'f32' }),
    'and a mipmapped array': () => textures.MipmappedArray.create(device, { width: 4, format: 'f32' }),
    'and memory of an array': () => textures.mapArrays([{ array: sparse }], queued),
    'and a copy from an ordinary array': () => buffer.copyFrom(floats, queued),
    'and a copy to an ordinary array': () => buffer.copyTo(floats, queued),
    'and a copy to a new array': () => buffer.toArray(queued),
    'and a copy that blocks': () => buffer.copyFromSync(floats, queued),
    'and a fill that blocks': () => buffer.fillSync(1, queued),
    'and texels of an ordinary array': () => array.copyFrom(floats, queued),
    'and texels that block': () => array.copyFromSync(floats, queued),
    'and texels to a new array': () => array.toArray(queued),
    'and rows of an ordinary array': () => pitched.copyFrom(floats, queued),
    'and rows that block': () => pitched.copyToSync(floats, queued),
    'and a capture of it': () => Graph.capture(stream, () => undefined),
    'and an event that it recorded is asked': () => stream.record(event).query(),
    'and an event that it recorded is waited for': () => stream.record(event).synchronizeSync(),
    'and the events of the whole context': () => device.primaryContext.record(event),
  }

  test.each(Object.keys(actions))('%s', async (what) => {
    let refusal: unknown
    let result: unknown
    try {
      using graph = Graph.capture(stream, () => {
        result = actions[what]?.()
      })
      void graph
    } catch (error) {
      refusal = error
    }
    // A call that returns a promise rejects it, and the capture fails too.
    if (result instanceof Promise) await expect(result).rejects.toSatisfy(isTyped)
    else if (refusal === undefined) expect([what, result]).toBe('refused')
    if (refusal !== undefined) expect(refusal).toSatisfy(isTyped)
    expect(captureStatus(stream)).toBe('none')
    buffer.fill(3, { stream })
    await stream.synchronize()
    expect((await buffer.toArray({ stream }))[5]).toBe(3)
  })

  test('accepts every operation that a capture may contain', () => {
    using graph = Graph.capture(stream, () => {
      buffer.fill(1, queued)
      pitched.fill(1, queued)
      array.copyFrom(buffer, queued)
      stream.waitEvent(stream.record(event))
      stream.writeValue(DeviceBuffer.fromAddress(device, buffer.address, 'u32', 1), 1)
      managed.memory.fill(1, queued)
      void stream.hostFunction(() => undefined).catch(() => undefined)
    })
    expect(graph.nodes.length).toBeGreaterThanOrEqual(6)
  })
})

describe('a capture, used from another thread', () => {
  /** Returns the result of a call on the stream from another thread. */
  async function elsewhere(call: string): Promise<unknown> {
    const file = new URL('./fixtures/captureElsewhere.mjs', import.meta.url)
    const worker = new Worker(file, { workerData: { handle: stream.handle, call } })
    const [answer] = await once(worker, 'message')
    await worker.terminate()
    return answer
  }

  test('refuses to be ended there, and a second capture to begin there', async () => {
    const { handle, context } = stream
    context.run(() => expect(cuStreamBeginCapture(handle, 1)).toBe(0))
    const answers = []
    for (const call of ['end', 'status', 'capture']) answers.push(await elsewhere(call))
    const graph = new BigUint64Array(1)
    context.run(() => cuStreamEndCapture(handle, graph))
    // CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
    expect(answers).toEqual([908, 'active', 'CUDA_ERROR_ILLEGAL_STATE'])
    expect(captureStatus(stream)).toBe('none')
    using memory = zeros()
    memory.fill(4, { stream })
    await stream.synchronize()
    expect(firstOf(memory)).toBe(4)
  })
})

describe('a graph', () => {
  test('that changes during instantiate() is instantiated as it was, or not at all', () => {
    using memory = zeros()
    const graph = Graph.create(device)
    const node = graph.add(fillNode(memory, 1))
    const options = (change: () => unknown) => ({
      get autoFreeOnLaunch() {
        change()
        return false
      },
    })
    using more = graph.instantiate(options(() => graph.add(fillNode(memory, 2), { dependencies: [node] })))
    more.launch(stream)
    stream.synchronizeSync()
    expect([1, 2]).toContain(firstOf(memory))
    expect(() => graph.instantiate(options(() => graph.dispose()))).toThrow(DisposedError)
  })

  test('refuses nodes of another graph', () => {
    using memory = zeros()
    using graph = Graph.create(device)
    using foreign = Graph.create(device)
    const own = graph.add(fillNode(memory, 1))
    const theirs = foreign.add(fillNode(memory, 2))
    using exec = graph.instantiate()
    for (const act of [
      () => graph.add(fillNode(memory, 3), { dependencies: [theirs] }),
      () => graph.addDependency(own, theirs),
      () => graph.removeDependency(theirs, own),
      () => graph.addGraph(foreign, { dependencies: [theirs] }),
      () => graph.allocate('u8', 1, { dependencies: [theirs] }),
      () => graph.addConditional({ type: 'if', dependencies: [theirs] }),
      () => graph.capture(stream, () => undefined, { dependencies: [theirs] }),
      () => graph.findInClone(theirs),
      () => exec.updateNode(theirs, fillNode(memory, 3)),
      () => exec.setEnabled(theirs, false),
      () => exec.isEnabled(theirs),
    ]) {
      expect(act).toThrow()
      try {
        act()
      } catch (error) {
        expect(error).toSatisfy(isTyped)
      }
    }
    expect([graph.nodes.length, foreign.nodes.length]).toEqual([1, 1])
    exec.launch(stream)
    stream.synchronizeSync()
    expect(firstOf(memory)).toBe(1)
  })

  test('refuses to run on memory, modules or streams that were disposed', async () => {
    const memory = zeros()
    const own = Module.loadSync(device, image)
    using graph = Graph.create(device)
    graph.add(kernelNode(own.kernel('take', [Params, 'ptr']), one, { x: 1, y: 2 }, memory))
    using exec = graph.instantiate()
    exec.launch(stream)
    await stream.synchronize()
    const gone = device.createStream()
    gone.dispose()
    expect(() => exec.launch(gone)).toThrow(DisposedError)
    own.dispose()
    expect(() => exec.launch(stream)).toThrow(DisposedError)
    memory.dispose()
    expect(() => exec.launch(stream)).toThrow(DisposedError)
    expect(() => copyNode(memory, memory)).toThrow(DisposedError)
  })
})

const Params = defineStruct('Params', { x: 'i32', y: 'i32' })
const image = `
.version 7.8
.target sm_70
.address_size 64
.visible .global .align 4 .b8 point[12];
.visible .entry take(.param .align 4 .b8 params[8], .param .u64 out) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [params+4];
  ld.param.u64 %rd1, [out];
  st.global.u32 [%rd1], %r1;
  ret;
}
`

test('every function that takes a struct refuses a struct of another size', () => {
  const Small = defineStruct('Small', { x: 'i32' })
  const Large = defineStruct('Large', { x: 'i32', y: 'i32', z: 'i32' })
  using own = Module.loadSync(device, image)
  using library = Library.loadSync(device, image)
  using out = zeros()
  for (const code of [own, library]) {
    expect(() => code.kernel('take', [Small, 'ptr'])).toThrow(/Small|8 bytes/)
    expect(() => code.kernel('take', [Large, 'ptr'])).toThrow(/Large|8 bytes/)
    expect(() => code.global('point', Params)).toThrow(RangeError)
    expect(code.global('point', Large).length).toBe(1)
  }
  const take = own.kernel('take', [Params, 'ptr'])
  const wrong = [
    { x: 1 },
    { x: 1, y: 2, z: 3 },
    { x: 1, y: 0.5 },
    { x: 1, y: Number.NaN },
    { x: 1, y: 2 ** 31 },
    [1, 2],
    null,
  ]
  for (const value of wrong) expect(() => take.launch(one, value as never, out)).toThrow(/args\[0\]/)
  using points = DeviceBuffer.zeros(device, Params, 3)
  expect(() => points.copyFrom(new Uint8Array(23))).toThrow()
  expect(() => points.fill({ x: 1 } as never)).toThrow(/y/)
  using bytes = DeviceBuffer.zeros(device, 'u8', 20)
  expect(() => bytes.reinterpret(Params)).toThrow(RangeError)
})

test('a green context disposed before its stream: queued work completes, and later calls name the disposed object', async () => {
  const { groups } = DeviceResource.of(device).split(2, { groups: 1 })
  const green = GreenContext.create(groups)
  const mine = green.createStream()
  using memory = zeros()
  using graph = Graph.capture(mine, () => memory.fill(9, { stream: mine }))
  memory.fill(5, { stream: mine })
  const mark = mine.record()
  green.dispose()
  await mark.synchronize()
  expect(firstOf(memory)).toBe(5)
  for (const use of [
    () => memory.fill(1, { stream: mine }),
    () => add.launch({ ...one, stream: mine }, memory, 1),
    () => mine.synchronizeSync(),
    () => mine.query(),
    () => mine.record(),
    () => mine.waitEvent(mark),
    () => Graph.capture(mine, () => undefined),
    () => DeviceBuffer.allocateOn(mine, 'u8', 1),
    () => green.createStream(),
    () => green.record(mark),
  ]) {
    expect(use).toThrow(DisposedError)
  }
  using exec = graph.instantiate()
  exec.launch(stream)
  await stream.synchronize()
  expect(firstOf(memory)).toBe(9)
  mine.dispose()
})

test('a kernel launch refuses a texture over freed memory, whichever object freed it', () => {
  const { TextureObject } = textures
  const memory = DeviceBuffer.zeros(device, 'f32', 128)
  using growing = GrowableBuffer.reserve(device, 'f32', { maximumLength: 1 << 20 })
  growing.resize(1 << 20)
  const looks = [TextureObject.create(memory), TextureObject.create(growing.buffer)]
  memory.dispose()
  growing.resize(0)
  for (const look of looks) {
    expect(() => look.handle).toThrow(/disposed|the view ends at byte 4194304 of its memory, which has only 0/)
    look.dispose()
  }
})

test('a linker refuses more input after it has linked its image', () => {
  using linker = Linker.create(device)
  linker.add(image)
  const made = linker.completeSync()
  expect(made.length).toBeGreaterThan(0)
  expect(() => linker.add(image)).toThrow(/Linker.add: .*complete/)
  expect(() => linker.addFile('/none.ptx')).toThrow(/Linker.addFile: .*complete/)
  expect(() => linker.completeSync()).toThrow(/Linker.complete/)
})
