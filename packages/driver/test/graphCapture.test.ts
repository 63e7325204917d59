import { DisposedError, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { add, device, firstOf, one, other, stream, zeros } from './support/graphObjects.js'

const { finishReleasesSync } = await import('@shoal/driver/shared')
const driver = await import('@shoal/driver')
const { DeviceBuffer, PinnedBuffer } = driver
const { CudaArray } = await import('@shoal/driver/texture')
const { captureStatus, fillNode, Graph } = await import('@shoal/driver/graph')

describe('Graph.capture', () => {
  test('runs nothing during the capture, and all of it at each launch, on any stream', async () => {
    using sum = zeros()
    using graph = Graph.capture(stream, () => {
      expect(captureStatus(stream)).toBe('active')
      add.launch({ ...one, stream }, sum, 2)
      add.launch({ ...one, stream }, sum, 3)
    })
    expect([captureStatus(stream), firstOf(sum)]).toEqual(['none', 0])
    using step = graph.instantiate()
    for (let turn = 0; turn < 10; turn += 1) step.launch(turn % 2 === 0 ? stream : other)
    await Promise.all([stream.synchronize(), other.synchronize()])
    expect(firstOf(sum)).toBe(50)
    step.launch()
    device.primaryContext.synchronizeSync()
    expect(firstOf(sum)).toBe(55)
  })

  test('includes streams that wait for one of its events and are waited for again', async () => {
    using sums = zeros(2)
    const [first, last] = [sums.slice(0, 1), sums.slice(1, 2)]
    using graph = Graph.capture(stream, () => {
      add.launch({ ...one, stream }, first, 1)
      other.waitEvent(stream.record())
      add.launch({ ...one, stream: other }, last, 5)
      add.launch({ ...one, stream }, first, 1)
      stream.waitEvent(other.record())
    })
    expect(graph.nodes.map(({ type }) => type)).toEqual(['kernel', 'kernel', 'kernel'])
    const [root, side, main] = graph.nodes
    expect(graph.rootNodes).toEqual([root])
    expect(root?.dependents).toEqual([side, main])
    expect([side?.dependencies, main?.dependencies]).toEqual([[root], [root]])
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect(sums.toArraySync()).toEqual(Uint32Array.of(2, 5))
  })

  test('records external events and waits for them in separate nodes', async () => {
    using sum = zeros()
    using before = device.createEvent()
    using after = device.createEvent()
    using graph = Graph.capture(stream, () => {
      stream.waitEvent(before, { external: true })
      add.launch({ ...one, stream }, sum, 2)
      expect(stream.record(after, { external: true })).toBe(after)
    })
    expect(graph.nodes.map(({ type }) => type)).toEqual(['wait-event', 'kernel', 'event-record'])
    using step = graph.instantiate()
    add.launch({ ...one, stream: other }, sum, 1)
    other.record(before)
    step.launch(stream)
    await Promise.all([after.synchronize(), stream.synchronize()])
    expect(firstOf(sum)).toBe(3)
  })

  test('copies page-locked memory at each launch, and refuses ordinary arrays', async () => {
    using memory = zeros(4)
    using input = PinnedBuffer.allocate(device, 'u32', 4)
    using output = PinnedBuffer.allocate(device, 'u32', 4)
    using graph = Graph.capture(stream, () => {
      memory.copyFrom(input, { stream })
      add.launch({ ...one, stream }, memory, 1)
      void memory.copyTo(output, { stream })
    })
    using step = graph.instantiate()
    for (const turn of [7, 9]) {
      input.array.fill(turn)
      step.launch(stream)
      await stream.synchronize()
      expect([...output.array]).toEqual([turn + 1, turn, turn, turn])
    }
    expect(() => Graph.capture(stream, () => memory.copyFrom(new Uint32Array(4), { stream }))).toThrow(
      'DeviceBuffer.copyFrom: an ordinary array cannot be captured into a graph',
    )
    expect(captureStatus(stream)).toBe('none')
  })

  test('calls a host function at each launch while a graph holds the function', async () => {
    const calls: string[] = []
    const settled = async (): Promise<void> => {
      await stream.synchronize()
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    let promise: Promise<void> | undefined
    const graph = Graph.capture(stream, () => {
      promise = stream.hostFunction(() => void calls.push('captured'))
      // A function on a stream without a capture is called once, now.
      void other.hostFunction(() => void calls.push('other'))
    })
    await promise
    await other.synchronize()
    await settled()
    expect(calls).toEqual(['other'])
    expect(graph.nodes.map(({ type }) => type)).toEqual(['host'])
    using step = graph.instantiate()
    using clone = graph.clone()
    graph.dispose()
    for (let turn = 0; turn < 3; turn += 1) step.launch(stream)
    await settled()
    expect(calls).toEqual(['other', 'captured', 'captured', 'captured'])
    using into = Graph.create(device)
    into.capture(stream, () => {
      // Each of these streams may be given.
      using within = Graph.capture(other, () => void stream.hostFunction(() => void calls.push('outer')))
      expect(within.nodes).toHaveLength(0)
    })
    using last = into.instantiate()
    last.launch(stream)
    using again = clone.instantiate()
    again.launch(stream)
    await settled()
    expect(calls.slice(4)).toEqual(['outer', 'captured'])
    expect(() =>
      Graph.capture(stream, () => {
        void stream.hostFunction(() => void calls.push('never'))
        throw new Error('of the function')
      }),
    ).toThrow('of the function')
    await settled()
    expect(calls).toHaveLength(6)
  })

  test('ends when the function throws or is asynchronous, with its error', () => {
    class Own extends Error {}
    expect(() =>
      Graph.capture(stream, () => {
        throw new Own()
      }),
    ).toThrow(Own)
    expect(() => Graph.capture(stream, (async () => {}) as never)).toThrow(
      'Graph.capture: fn must be a synchronous function, not one that returns a promise',
    )
    expect(captureStatus(stream)).toBe('none')
  })

  test('ends even if the function disposes the stream', async () => {
    using sum = zeros()
    const own = device.createStream({ nonBlocking: true })
    using graph = Graph.capture(own, () => {
      add.launch({ ...one, stream: own }, sum, 3)
      own.dispose()
    })
    expect(own.disposed).toBe(true)
    using exec = graph.instantiate()
    exec.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(3)
  })

  test('continues when another stream is disposed during the capture, whose work still completes', async () => {
    using sum = zeros()
    using written = zeros()
    const another = device.createStream({ nonBlocking: true })
    using graph = Graph.capture(stream, () => {
      add.launch({ ...one, stream: another }, written, 5)
      another.dispose()
      add.launch({ ...one, stream }, sum, 3)
    })
    expect(graph.nodes).toHaveLength(1)
    await device.primaryContext.synchronize()
    expect([firstOf(sum), firstOf(written)]).toEqual([0, 5])
  })

  test('keeps a view alive as long as its memory', () => {
    const physical = driver.PhysicalMemory.create(device, 1 << 21)
    const range = driver.AddressRange.reserve(1 << 21)
    const mapped = range.map(physical)
    const view = DeviceBuffer.view(device, mapped, 'u32', { length: 4 })
    using graph = Graph.capture(stream, () => void view.fill(1, { stream })).keep(view)
    using step = graph.instantiate()
    step.launch(stream)
    stream.synchronizeSync()
    expect(firstOf(view as never)).toBe(1)
    for (const owner of [mapped, range, physical]) owner.dispose()
    expect(() => step.launch(stream)).toThrow(DisposedError)
    expect(() => graph.instantiate()).toThrow(DisposedError)
    expect(() => graph.keep(view)).toThrow(DisposedError)
  })

  test('continues when memory is disposed during the capture, and frees the memory afterwards', () => {
    const { AddressRange, CachingPool, GrowableBuffer, ManagedBuffer, PhysicalMemory, RegisteredBuffer } = driver
    const target = zeros()
    const host = new ArrayBuffer(1 << 20)
    // Objects from the first use of each kind stay, so create them first.
    using physical = PhysicalMemory.create(device, 1 << 21)
    using range = AddressRange.reserve(1 << 21)
    const make = () => {
      const pool = CachingPool.create(device)
      pool.allocate(stream, 'u8', 1 << 20).dispose()
      return [
        DeviceBuffer.zeros(device, 'u8', 1 << 20),
        ManagedBuffer.allocate(device, 'u8', 1 << 20),
        PinnedBuffer.allocate(device, 'u8', 1 << 20),
        RegisteredBuffer.register(device, host),
        CudaArray.create(device, { width: 1 << 10, height: 256, format: 'u32' }),
        GrowableBuffer.reserve(device, 'u8', { maximumLength: 1 << 21, length: 1 << 20 }),
        range.map(physical),
        pool,
      ]
    }
    for (const owner of make()) owner.disposeSync()
    const { free } = device.memoryInfo()
    const owners = make()
    expect(device.memoryInfo().free).toBeLessThan(free)
    const warnings: unknown[] = []
    const listen = (warning: unknown): void => void warnings.push(warning)
    process.on('warning', listen)
    using graph = Graph.capture(stream, () => {
      target.fill(7, { stream })
      for (const owner of owners) owner.dispose()
      expect(owners.map(({ disposed }) => disposed)).toEqual(owners.map(() => true))
    })
    finishReleasesSync()
    expect(device.memoryInfo().free).toBe(free)
    process.off('warning', listen)
    expect(warnings).toEqual([])
    RegisteredBuffer.register(device, host).dispose()
    using step = graph.instantiate()
    step.launch(stream)
    stream.synchronizeSync()
    expect(firstOf(target)).toBe(7)
    target.dispose()
  })

  test('is invalidated by a forbidden call, and throws', () => {
    const forbidden = () => Graph.capture(stream, () => stream.synchronizeSync())
    expect(forbidden).toThrow(expect.objectContaining({ code: 'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED' }))
    const swallowed = () =>
      Graph.capture(stream, () => {
        expect(() => stream.query()).toThrow(StatusError)
        expect(captureStatus(stream)).toBe('invalidated')
      })
    expect(swallowed).toThrow(expect.objectContaining({ code: 'CUDA_ERROR_STREAM_CAPTURE_INVALIDATED' }))
    const allocated = () => Graph.capture(stream, () => DeviceBuffer.allocate(device, 'u32', 8).dispose())
    expect(allocated).toThrow(expect.objectContaining({ code: 'CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED' }))
    const relaxed = Graph.capture(stream, () => DeviceBuffer.allocate(device, 'u32', 8).dispose(), { mode: 'relaxed' })
    relaxed.dispose()
    const unjoined = () =>
      Graph.capture(stream, () => {
        other.waitEvent(stream.record())
        zerosOn(other)
      })
    expect(unjoined).toThrow(expect.objectContaining({ code: 'CUDA_ERROR_STREAM_CAPTURE_UNJOINED' }))
    expect([captureStatus(stream), captureStatus(other)]).toEqual(['none', 'none'])
  })

  test('adds to an existing graph, after the given nodes', async () => {
    using sum = zeros()
    using graph = Graph.create(device)
    const set = graph.add(fillNode(sum, 40))
    expect(graph.capture(stream, () => add.launch({ ...one, stream }, sum, 2), { dependencies: [set] })).toBe(graph)
    expect(graph.edges).toEqual([{ from: set, to: graph.nodes[1], fromPort: 0, type: 'default' }])
    using step = graph.instantiate()
    step.launch(stream)
    await stream.synchronize()
    expect(firstOf(sum)).toBe(42)
  })

  test('into a graph that is disposed meanwhile ends before the graph does', () => {
    using sum = zeros()
    const graph = Graph.create(device)
    graph.capture(stream, () => {
      sum.fill(1, { stream })
      graph.dispose()
      sum.fill(2, { stream })
    })
    expect([captureStatus(stream), graph.disposed]).toEqual(['none', true])
    expect(() => graph.nodes).toThrow(DisposedError)
  })

  test('refuses wrong streams, functions and options', () => {
    expect(() => Graph.capture(1 as never, () => {})).toThrow('Graph.capture: stream must be a Stream, not 1')
    expect(() => Graph.capture(stream, 1 as never)).toThrow('Graph.capture: fn must be a function')
    expect(() => Graph.capture(stream, () => {}, { mode: 'strict' as never })).toThrow('Graph.capture: mode must be')
    expect(() => Graph.capture(stream, () => {}, { modes: 1 } as never)).toThrow('modes')
    using gone = device.createStream()
    gone.dispose()
    expect(() => Graph.capture(gone, () => {})).toThrow(DisposedError)
  })

  function zerosOn(on: import('@shoal/driver').Stream): void {
    using memory = DeviceBuffer.allocateOn(on, 'u32', 4)
    memory.fill(0, { stream: on })
  }
})
