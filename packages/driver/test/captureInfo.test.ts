import { DisposedError, StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { add, device, firstOf, one, other, second, stream, zeros } from './support/graphObjects.js'

const { DeviceBuffer } = await import('@shoal/driver')
const { captureInfo, captureStatus, fillNode, Graph, setCaptureDependencies, withCaptureMode } = await import(
  '@shoal/driver/graph'
)

describe('captureInfo', () => {
  test('describes the capture for its stream and for streams that joined', () => {
    expect(captureInfo(stream)).toBeUndefined()
    using memory = zeros()
    using graph = Graph.create(device)
    graph.capture(stream, () => {
      const before = captureInfo(stream)
      expect(before).toMatchObject({ status: 'active', graphHandle: graph.handle, dependencyHandles: [] })
      expect(captureInfo(other)).toBeUndefined()
      add.launch({ ...one, stream }, memory, 1)
      const [node] = graph.nodes
      expect(captureInfo(stream)).toEqual({ ...before, dependencyHandles: [node?.handle] })
      other.waitEvent(stream.record())
      expect(captureInfo(other)).toEqual(captureInfo(stream))
      stream.waitEvent(other.record())
    })
    expect(captureInfo(other)).toBeUndefined()
    using two = Graph.create(device)
    let first = 0n
    two.capture(stream, () => {
      first = captureInfo(stream)?.id ?? 0n
    })
    two.capture(stream, () => expect(captureInfo(stream)?.id).not.toBe(first))
  })

  test('reports an invalidated capture', () => {
    const failing = () =>
      Graph.capture(stream, () => {
        expect(() => stream.synchronizeSync()).toThrow(StatusError)
        expect(captureInfo(stream)).toEqual({ status: 'invalidated', id: 0n, graphHandle: 0n, dependencyHandles: [] })
      })
    expect(failing).toThrow('CUDA_ERROR_STREAM_CAPTURE_INVALIDATED')
    expect(captureStatus(stream)).toBe('none')
  })
})

describe('setCaptureDependencies', () => {
  test('inserts nodes added by hand between captured nodes', async () => {
    using memory = zeros()
    using graph = Graph.create(device)
    graph.capture(stream, () => {
      const clear = graph.add(fillNode(memory, 40))
      setCaptureDependencies(stream, [clear])
      add.launch({ ...one, stream }, memory, 2)
      const [, run] = graph.nodes
      const aside = graph.add(fillNode(memory.slice(0, 1), 7), { dependencies: [] })
      setCaptureDependencies(stream, [aside], { mode: 'add' })
      expect(captureInfo(stream)?.dependencyHandles).toEqual([run?.handle, aside.handle])
      setCaptureDependencies(stream, [])
      expect(captureInfo(stream)?.dependencyHandles).toEqual([])
      setCaptureDependencies(stream, [run as never])
      aside.remove()
    })
    using exec = graph.instantiate()
    exec.launch(stream)
    await stream.synchronize()
    expect(firstOf(memory)).toBe(42)
  })

  test('refuses wrong arguments by name', () => {
    using graph = Graph.create(device)
    using foreign = Graph.create(device)
    using memory = zeros()
    const node = graph.add(fillNode(memory, 1))
    const theirs = foreign.add(fillNode(memory, 1))
    expect(() => setCaptureDependencies(stream, [node])).toThrow(StatusError)
    expect(() => setCaptureDependencies(7 as never, [])).toThrow(/setCaptureDependencies: stream must be/)
    expect(() => setCaptureDependencies(stream, 7 as never)).toThrow(/nodes must be an array of nodes/)
    expect(() => setCaptureDependencies(stream, [7 as never])).toThrow(/nodes\[0\] must be/)
    expect(() => setCaptureDependencies(stream, [], { mode: 'all' as never })).toThrow(/mode must be/)
    expect(() => captureInfo(undefined as never)).toThrow(/captureInfo: stream must be/)
    const removed = graph.add(fillNode(memory, 1))
    removed.remove()
    expect(() => setCaptureDependencies(stream, [removed])).toThrow(DisposedError)
    const mixing = () => graph.capture(stream, () => setCaptureDependencies(stream, [theirs]))
    expect(mixing).toThrow(StatusError)
    expect(captureStatus(stream)).toBe('none')
  })
})

describe('withCaptureMode', () => {
  test('allows allocation during a capture, and restores the previous mode', async () => {
    let made: ReturnType<typeof zeros> | undefined
    using graph = Graph.capture(stream, () => {
      made = withCaptureMode('relaxed', () => DeviceBuffer.allocate(device, 'u32', 1))
      made.fill(5, { stream })
    })
    using exec = graph.instantiate()
    exec.launch(stream)
    await stream.synchronize()
    expect(firstOf(made as never)).toBe(5)
    made?.dispose()
    const failing = () => Graph.capture(stream, () => void DeviceBuffer.allocate(device, 'u32', 1))
    expect(failing).toThrow('CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED')
  })

  test('restores the mode if fn throws, and refuses wrong arguments', () => {
    const thrown = new Error('thrown')
    const throwing = () =>
      withCaptureMode('relaxed', () => {
        throw thrown
      })
    expect(throwing).toThrow(thrown)
    expect(() => Graph.capture(stream, () => void DeviceBuffer.allocate(second, 'u32', 1))).toThrow(StatusError)
    expect(() => withCaptureMode('none' as never, () => 1)).toThrow(/withCaptureMode: mode must be/)
    expect(() => withCaptureMode('relaxed', 7 as never)).toThrow(/fn must be/)
    expect(() => withCaptureMode('relaxed', async () => 1)).toThrow(
      'withCaptureMode: fn must be a synchronous function',
    )
  })
})
