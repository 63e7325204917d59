// Tests memory of streams and pools during a capture.
import { BusyError } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'
import { device, firstOf, other, stream, zeros } from './support/graphObjects.js'

const { finishReleasesSync } = await import('@shoal/driver/shared')
const { CachingPool, DeviceBuffer, MemoryPool } = await import('@shoal/driver')
const { captureStatus, Graph, withCaptureMode } = await import('@shoal/driver/graph')

/** Returns the bytes in use, after pending releases. */
const usedBytes = (): number => {
  finishReleasesSync()
  return device.memoryPool.used.current
}

function thrownBy(call: () => unknown): unknown {
  try {
    return call()
  } catch (error) {
    return error
  }
}

beforeEach(() => {
  device.primaryContext.synchronizeSync()
})

describe('memory of a stream during capture', () => {
  test.each(['dispose', 'disposeOn'] as const)(
    'memory allocated before the capture and disposed by %s() is freed when the capture ends',
    (way) => {
      using target = zeros()
      const before = usedBytes()
      const own = device.createStream({ nonBlocking: true })
      const made = [
        DeviceBuffer.allocateOn(stream, 'u8', 1000),
        device.memoryPool.allocate(stream, 'u8', 1000),
        DeviceBuffer.allocateOn(own, 'u8', 1000),
        DeviceBuffer.allocateOn(own, 'u8', 1000),
      ]
      stream.synchronizeSync()
      own.synchronizeSync()
      const [last] = made.splice(3)
      own.dispose()
      using graph = Graph.capture(stream, () => {
        target.fill(7, { stream })
        for (const memory of made) way === 'dispose' ? memory.dispose() : memory.disposeOn(stream)
        last?.dispose()
        expect(made.every(({ disposed }) => disposed)).toBe(true)
      })
      stream.synchronizeSync()
      expect([graph.nodes.map(({ type }) => type), usedBytes()]).toEqual([['memset'], before])
      using step = graph.instantiate()
      step.launch(stream)
      stream.synchronizeSync()
      expect(firstOf(target)).toBe(7)
    },
  )

  test('memory allocated in a capture is freed where the program frees it: in the capture or after a launch', () => {
    using target = zeros()
    using pool = MemoryPool.create(device)
    const before = usedBytes()
    let left: Disposable | undefined
    using graph = Graph.capture(stream, () => {
      const [one, two] = [DeviceBuffer.allocateOn(stream, 'u32', 4), pool.allocate(stream, 'u32', 4)]
      left = DeviceBuffer.allocateOn(stream, 'u32', 4).fill(5, { stream })
      one.fill(3, { stream })
      target.copyFrom(one.slice(0, target.length), { stream })
      one.dispose()
      two.disposeOn(stream)
    })
    expect(graph.nodes.map(({ type }) => type).filter((type) => type.startsWith('mem-'))).toEqual([
      'mem-alloc',
      'mem-alloc',
      'mem-alloc',
      'mem-free',
      'mem-free',
    ])
    using step = graph.instantiate()
    step.launch(stream)
    stream.synchronizeSync()
    expect(firstOf(target)).toBe(3)
    left?.[Symbol.dispose]()
    stream.synchronizeSync()
    expect(usedBytes()).toBe(before)
  })

  test('memory from the default stream is freed after the capture of a stream that waits for it', () => {
    using blocking = device.createStream()
    using target = zeros()
    const before = usedBytes()
    const memory = DeviceBuffer.allocateOn(device.defaultStream, 'u8', 1000)
    device.defaultStream.synchronizeSync()
    using graph = Graph.capture(blocking, () => {
      target.fill(7, { stream: blocking })
      memory.dispose()
    })
    device.defaultStream.synchronizeSync()
    expect([graph.nodes.length, usedBytes()]).toEqual([1, before])
  })

  test('a stream that joined the capture may be disposed during the capture', () => {
    using target = zeros()
    using graph = Graph.capture(stream, () => {
      using side = device.createStream({ nonBlocking: true })
      side.waitEvent(stream.record())
      target.fill(9, { stream: side })
      stream.waitEvent(side.record())
    })
    using step = graph.instantiate()
    step.launch(stream)
    stream.synchronizeSync()
    expect(firstOf(target)).toBe(9)
  })
})

describe('a CachingPool during a capture', () => {
  test.each([true, false])('never puts shared pool memory into the graph; warm: %s', (isWarm) => {
    using pool = CachingPool.create(device)
    if (isWarm) pool.allocate(stream, 'u32', 4).dispose()
    const message = /^CachingPool.allocate: stream must be one that is not captured .*, not 'a captured one'$/
    Graph.capture(stream, () => {
      expect(() => pool.allocate(stream, 'u32', 4)).toThrow(message)
    }).dispose()
    expect([captureStatus(stream), pool.used.current]).toEqual(['none', 0])
    pool.allocate(stream, 'u32', 4).dispose()
  })

  test('used as the device allocator leaves captures their own memory', () => {
    using target = zeros()
    using pool = CachingPool.create(device)
    pool.allocate(stream, 'u32', 4).dispose()
    device.allocator = pool
    using graph = Graph.capture(stream, () => {
      using memory = DeviceBuffer.allocateOn(stream, 'u32', 4)
      memory.fill(7, { stream })
      target.copyFrom(memory.slice(0, target.length), { stream })
    })
    using mine = DeviceBuffer.allocateOn(stream, 'u32', 4)
    device.allocator = undefined
    mine.fill(1, { stream })
    using step = graph.instantiate()
    step.launch(stream)
    expect([...mine.toArraySync({ stream }), firstOf(target)]).toEqual([1, 1, 1, 1, 7])
  })

  test('refuses a miss before it invalidates the capture, unless the mode is relaxed', () => {
    using pool = CachingPool.create(device)
    using target = zeros()
    pool.allocate(other, 'u8', 1000).dispose()
    let failure: unknown
    using graph = Graph.capture(stream, () => {
      pool.allocate(other, 'u8', 1000).dispose()
      failure = thrownBy(() => pool.allocate(other, 'u8', 2 ** 22))
      withCaptureMode('relaxed', () => pool.allocate(other, 'u8', 2 ** 22).dispose())
      target.fill(7, { stream })
    })
    expect(failure).toBeInstanceOf(BusyError)
    expect(failure).toMatchObject({
      message: expect.stringMatching(
        /^CachingPool\.allocate: the CachingPool is busy with a capture; no free block has 4194304 bytes, .*allocate before it/,
      ),
    })
    expect([graph.nodes.length, pool.used.current]).toEqual([1, 0])
    const relaxed = { mode: 'relaxed' } as const
    Graph.capture(stream, () => pool.allocate(other, 'u8', 2 ** 25).dispose(), relaxed).dispose()
    expect(pool.statistics.misses).toBe(3)
  })

  test('queries no events during a capture, because a query would invalidate it', () => {
    using pool = CachingPool.create(device)
    using target = zeros()
    const memory = pool.allocate(other, 'u8', 1000)
    pool.recordUse(memory, stream)
    memory.dispose()
    using gone = device.createStream({ nonBlocking: true })
    pool.allocate(gone, 'u8', 2 ** 21).dispose()
    gone.dispose()
    using graph = Graph.capture(stream, () => {
      target.fill(7, { stream })
      pool.allocate(other, 'u8', 1000).dispose()
      expect(() => pool.allocate(other, 'u8', 2 ** 23)).toThrow(BusyError)
    })
    expect(graph.nodes.length).toBe(1)
  })

  test('holds back memory that a graph launch uses on another stream', async () => {
    using pool = CachingPool.create(device)
    const memory = pool.allocate(stream, 'u32', 1)
    using graph = Graph.capture(stream, () => memory.slice().fill(7, { stream }))
    using step = graph.instantiate()
    using flag = zeros()
    other.waitValue(flag, 1)
    for (let turn = 0; turn < 3; turn += 1) step.launch(other)
    const { address } = memory
    memory.dispose()
    const next = pool.allocate(stream, 'u32', 1)
    expect([next.address === address, pool.statistics.waitingBytes]).toEqual([false, 512])
    stream.writeValue(flag, 1)
    await other.synchronize()
    expect(pool.trimSync()).toBe(0)
    expect(pool.statistics.waitingBytes).toBe(0)
    next.dispose()
  })

  test('reuses memory of a captured stream after the capture', async () => {
    using target = zeros()
    using pool = CachingPool.create(device)
    const memory = pool.allocate(stream, 'u32', 4)
    pool.recordUse(memory, other)
    Graph.capture(other, () => {
      target.fill(1, { stream: other })
      memory.dispose()
    }).dispose()
    await other.synchronize()
    for (let turn = 0; turn < 3; turn += 1) pool.allocate(stream, 'u32', 4).dispose()
    expect(pool.statistics.waitingBytes).toBe(0)
    expect([await pool.trim(), pool.reserved.current]).toEqual([expect.any(Number), 0])
  })
})
