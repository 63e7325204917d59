import { inspect } from 'node:util'
import { withContext } from '@shoal/cuda-sys'
import { type CUdeviceptr, cuMemcpyDtoH } from '@shoal/cuda-sys/driver'
import {
  Communicator,
  CommunicatorAbortedError,
  group,
  groupOffThread,
  type NcclMemory,
  type Window,
} from '@shoal/nccl'
import { nccl } from '@shoal/nccl-sys'
import { DisposedError, memoryProtocol } from '@shoal/types'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { connected } from './fixtures/connected.js'
import { contextOf, deviceCount, errorOf, startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

let communicators: Communicator[]
let streams: TestStream[]
const ranks = Array.from({ length: deviceCount }, (_, rank) => rank)
const length = 2048
const byteLength = 4 * length

beforeAll(async () => {
  startSoftwareDevice()
  communicators = await Communicator.initAll(ranks)
  streams = communicators.map(({ deviceOrdinal }) => new TestStream(deviceOrdinal))
})

afterAll(async () => {
  for (const communicator of communicators) await communicator.destroy()
})

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end()
})

/** Returns why the tests of windows cannot run with the loaded library; undefined if they can. */
function without(symbol: string): string | undefined {
  return nccl.has(symbol) ? undefined : `this libnccl has no ${symbol}`
}

const streamOf = (rank: number) => streams[rank] as TestStream
const communicatorOf = (rank: number) => communicators[rank] as Communicator

function wait(): void {
  for (const stream of streams) stream.wait()
}

interface Opened {
  readonly memory: NcclMemory
  readonly window: Window
}

/** Opens a window of `length` floats on each rank, closed after the test. */
async function open(all = communicators): Promise<Opened[]> {
  const memory = await Promise.all(all.map((communicator) => communicator.allocate({ dtype: 'f32', length })))
  const windows = await Promise.all(
    all.map((communicator, rank) => communicator.registerWindow(memory[rank] as NcclMemory)),
  )
  cleanUp.push(async () => {
    await Promise.all(windows.map((window) => window.dispose()))
    await Promise.all(memory.map((one) => one.free()))
  })
  return windows.map((window, rank) => ({ memory: memory[rank] as NcclMemory, window }))
}

/** Copies device memory with an operation of NCCL. */
function copy(rank: number, from: { readonly [memoryProtocol]: never } | object, to: object, count: number): void {
  const [communicator, stream] = [communicatorOf(rank), streamOf(rank)]
  group(() => {
    communicator.send(from as NcclMemory, { peer: rank, count, dtype: 'f32', stream })
    communicator.recv(to as NcclMemory, { peer: rank, count, dtype: 'f32', stream })
  })
  stream.wait()
}

function write(rank: number, memory: object, values: readonly number[]): void {
  const host = TestMemory.from(rank, Float32Array.from(values))
  copy(rank, host, memory, values.length)
  host.dispose()
}

function read(rank: number, memory: object, count: number): number[] {
  const host = TestMemory.zeros(rank, 'f32', count)
  copy(rank, memory, host, count)
  const values = host.floats()
  host.dispose()
  return values
}

/** Returns the first float at an address, as a rank's device loads it. */
function loaded(rank: number, address: bigint): number {
  const value = new Float32Array(1)
  const status = withContext(contextOf(rank), () => cuMemcpyDtoH(value, address as CUdeviceptr, 4))
  expect(status).toBe(0)
  return value[0] as number
}

describe('windows', () => {
  test('expose their memory, and the addresses of peers', async ({ skip }) => {
    const reason = without('ncclCommWindowRegister')
    if (reason !== undefined) return skip(reason)
    const opened = await open()
    for (const [rank, { memory, window }] of opened.entries()) {
      expect(window).toMatchObject({ memory, byteLength, symmetric: true, disposed: false })
      expect(window.handle).toBeGreaterThan(0n)
      expect(window.userPointer).toBe(memory.address)
      write(rank, memory, [100 + rank])
    }
    for (const [rank, { window }] of opened.entries()) {
      for (const peer of ranks) {
        const pointer = window.peerPointer(peer)
        expect(pointer).toBeGreaterThan(0n)
        expect(window.peerPointer(peer, 16)).toBe((pointer as bigint) + 16n)
        expect(window.lsaPointer(peer, 16)).toBe((pointer as bigint) + 16n)
        const theirs = window.peerMemory(peer)
        expect(theirs).toMatchObject({ rank: peer, address: pointer, byteLength })
        expect(theirs?.[memoryProtocol]).toMatchObject({ deviceOrdinal: rank, dtype: 'f32', length })
        expect(loaded(rank, theirs?.address as bigint)).toBe(100 + peer)
      }
      const everywhere = window.multimemPointer(32)
      if (everywhere !== undefined) expect(everywhere).toBeGreaterThan(0n)
    }
  })

  test('work as memory of collectives', async ({ skip }) => {
    const reason = without('ncclCommWindowRegister')
    if (reason !== undefined) return skip(reason)
    const opened = await open()
    for (const [rank, { memory }] of opened.entries()) write(rank, memory, [rank, 1])
    group(() => {
      for (const [rank, { memory }] of opened.entries()) {
        communicatorOf(rank).allReduce(memory, memory, { count: 2, stream: streamOf(rank) })
      }
    })
    wait()
    for (const [rank, { memory }] of opened.entries()) expect(read(rank, memory, 2)).toEqual([0 + 1 + 2, 3])
  })

  test('keep their memory alive, and throw after dispose()', async ({ skip }) => {
    const reason = without('ncclCommWindowRegister')
    if (reason !== undefined) return skip(reason)
    const [first] = await open()
    const { memory, window } = first as Opened
    const theirs = window.peerMemory(1)
    await Promise.all([window.dispose(), window.dispose()])
    expect(window.disposed).toBe(true)
    for (const use of [
      () => window.handle,
      () => window.userPointer,
      () => window.peerPointer(1),
      () => window.peerMemory(1),
      () => window.lsaPointer(0),
      () => window.multimemPointer(),
      () => theirs?.[memoryProtocol],
    ]) {
      expect(errorOf(use)).toBeInstanceOf(DisposedError)
    }
    await memory.free()
  })

  test('refuse memory that cannot be a window, and wrong offsets and ranks', async ({ skip }) => {
    const reason = without('ncclCommWindowRegister')
    if (reason !== undefined) return skip(reason)
    const communicator = communicatorOf(0)
    const other = TestMemory.zeros(1, 'f32', 1)
    cleanUp.push(() => other.dispose())
    await expect(communicator.registerWindow(other)).rejects.toThrow('belongs to device 1')
    const own = TestMemory.zeros(0, 'f32', length)
    cleanUp.push(() => own.dispose())
    await expect(communicator.registerWindow(own.part(4, 4096))).rejects.toThrow('multiple of 4096')
    await expect(communicator.registerWindow(own.part(0, 0))).rejects.toThrow(RangeError)
    await expect(communicator.registerWindow(own, { symmetric: 1 as never })).rejects.toThrow(TypeError)
    await expect(communicator.registerWindow(own, null as never)).rejects.toThrow(TypeError)
    await expect(communicator.registerWindow(own)).rejects.toThrow(
      'Communicator.registerWindow: memory must be NcclMemory or other mapped memory (PhysicalMemory), not memory allocated',
    )
    expect(communicator.disposed).toBe(false)
    const [first] = await open()
    const { window } = first as Opened
    for (const offset of [-1, byteLength]) expect(() => window.peerPointer(0, offset)).toThrow(RangeError)
    for (const [name, call] of [
      ['peerPointer', (offset: number) => window.peerPointer(0, offset)],
      ['lsaPointer', (offset: number) => window.lsaPointer(0, offset)],
      ['multimemPointer', (offset: number) => window.multimemPointer(offset)],
    ] as const) {
      const limits = `Window.${name}: offset must be an integer from 0 to ${byteLength - 1}, not ${byteLength}`
      expect(() => call(byteLength)).toThrow(limits)
      expect(() => call(byteLength - 1)).not.toThrow()
      expect(call(0)).toBe(name === 'multimemPointer' ? window.multimemPointer() : window[name](0))
    }
    for (const name of ['peerPointer', 'lsaPointer'] as const) {
      const parameter = name === 'lsaPointer' ? 'lsaRank' : 'peer'
      expect(() => window[name](3)).toThrow(`Window.${name}: ${parameter} must be an integer from 0 to 2, not 3`)
    }
    for (const offset of [0.5, '1' as never]) expect(() => window.peerPointer(0, offset)).toThrow(TypeError)
    expect(() => window.peerPointer(deviceCount)).toThrow(RangeError)
    expect(() => window.lsaPointer(deviceCount)).toThrow(RangeError)
    expect(() => window.multimemPointer(0, 5 as never)).toThrow(TypeError)
    expect(() => window.multimemPointer(0, 0n)).toThrow(RangeError)
    // NCCL decides whether it knows any other base.
    expect(() => window.multimemPointer(0, 4096n)).not.toThrow(RangeError)
  })

  test('block other calls of the communicator during registration', async ({ skip }) => {
    const reason = without('ncclCommWindowRegister')
    if (reason !== undefined) return skip(reason)
    const memory = await Promise.all(ranks.map((rank) => communicatorOf(rank).allocate(4096)))
    const opening = ranks.map((rank) => communicatorOf(rank).registerWindow(memory[rank] as NcclMemory))
    const send = () => communicatorOf(0).send(memory[0] as NcclMemory, { peer: 1, dtype: 'u8', stream: streamOf(0) })
    expect(errorOf(send)).toMatchObject({ code: 'SHOAL_BUSY', underWay: 'registerWindow' })
    const windows = await Promise.all(opening)
    await Promise.all(windows.map((window) => window.dispose()))
    await Promise.all(memory.map((one) => one.free()))
  })

  test('wait for the work of their device before they close', async ({ skip }) => {
    const reason = without('ncclCommWindowRegister')
    if (reason !== undefined) return skip(reason)
    const own = await connected((await Communicator.initAll([0, 1])) as [Communicator, Communicator])
    const opened = await open(own)
    const reduce = (rank: number) => {
      const { memory } = opened[rank] as Opened
      own[rank]?.allReduce(memory, memory, { stream: streamOf(rank) })
    }
    reduce(0)
    let isClosed = false
    const closing = opened[0]?.window.dispose().then(() => {
      isClosed = true
    })
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(isClosed).toBe(false)
    reduce(1)
    await closing
    expect(isClosed).toBe(true)

    // The other rank never calls it: an abort ends both the work and the wait.
    const { memory, window } = opened[1] as Opened
    own[1].allReduce(memory, memory, { stream: streamOf(1) })
    const stuck = window.dispose()
    const rejected = expect(stuck).rejects.toBeInstanceOf(CommunicatorAbortedError)
    await own[1].abort()
    await rejected
    expect(window.disposed).toBe(true)
    await own[0].abort()
  })

  test('reject by timeout if a rank never joins', async ({ skip }) => {
    const reason = without('ncclCommWindowRegister')
    if (reason !== undefined) return skip(reason)
    const [first, second] = (await Communicator.initAll([0, 1])) as [Communicator, Communicator]
    const memory = await first.allocate(4096)
    const started = performance.now()
    const error = await first.registerWindow(memory, { timeout: 200 }).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(CommunicatorAbortedError)
    expect(error).toMatchObject({ operation: 'registerWindow', reason: 'timeout', rank: 0 })
    expect(performance.now() - started).toBeLessThan(30_000)
    await Promise.all([first.abort(), second.abort()])
    await memory.free()
  })

  test('reject if their memory was disposed before registration', async ({ skip }) => {
    const reason = without('ncclCommWindowRegister')
    if (reason !== undefined) return skip(reason)
    const [communicator] = (await Communicator.initAll([0])) as [Communicator]
    cleanUp.push(() => communicator.destroy())
    const memory = await communicator.allocate(4096)
    const opening = communicator.registerWindow(memory)
    memory.dispose()
    await expect(opening).rejects.toBeInstanceOf(DisposedError)
    const other = TestMemory.zeros(0, 'u8', 4096)
    const late = communicator.registerWindow(other, { symmetric: false })
    other.dispose()
    await expect(late).rejects.toBeInstanceOf(DisposedError)
    expect(communicator.disposed).toBe(false)
  })

  test('end with their communicator, by destroy and by abort', async ({ skip }) => {
    const reason = without('ncclCommWindowRegister')
    if (reason !== undefined) return skip(reason)
    for (const end of ['destroy', 'abort'] as const) {
      const own = await Communicator.initAll([0, 1])
      const memory = await Promise.all(own.map((communicator) => communicator.allocate(4096)))
      const windows = await Promise.all(own.map((one, rank) => one.registerWindow(memory[rank] as NcclMemory)))
      await Promise.all(own.map((communicator) => communicator[end]()))
      for (const window of windows) {
        expect(window.disposed).toBe(true)
        await window.dispose()
      }
      for (const one of memory) await one.free()
    }
  })
})

test('a window prints one line, also after it was closed', async ({ skip }) => {
  const reason = without('ncclCommWindowRegister')
  if (reason !== undefined) return skip(reason)
  const [first] = (await open()) as [Opened]
  const { memory, window } = first
  const address = `0x${memory.address.toString(16)}`
  const line = `Window { deviceOrdinal: 0, address: ${address}, byteLength: ${byteLength}, symmetric: true }`
  expect(inspect(window)).toBe(line)
  await window.dispose()
  expect(inspect(window)).toBe(line.replace(' }', ', disposed: true }'))
})

describe('one-sided operations', () => {
  test('put into the window of the next rank, which waits for the signal', async ({ skip }) => {
    const reason = without('ncclPutSignal')
    if (reason !== undefined) return skip(reason)
    const opened = await open()
    for (const [rank, { memory }] of opened.entries()) write(rank, memory, [rank + 1, rank + 10])
    const half = byteLength / 2
    const put = (rank: number) => {
      const { memory, window } = opened[rank] as Opened
      const options = { peer: (rank + 1) % deviceCount, window, offset: half, count: 2, stream: streamOf(rank) }
      communicatorOf(rank).putSignal(memory, options)
    }
    for (const rank of ranks) {
      put(rank)
      communicatorOf(rank).waitSignal({ peer: (rank + deviceCount - 1) % deviceCount }, { stream: streamOf(rank) })
    }
    wait()
    for (const [rank, { memory }] of opened.entries()) {
      const from = (rank + deviceCount - 1) % deviceCount
      const range = {
        ...memory[memoryProtocol],
        address: memory.address + BigInt(half),
        byteLength: half,
        length: length / 2,
      }
      expect(read(rank, { [memoryProtocol]: range }, 2)).toEqual([from + 1, from + 10])
      expect(read(rank, memory, 2)).toEqual([rank + 1, rank + 10])
    }
  })

  test('default to the start of the window and channel 0, and accept the whole window', async ({ skip }) => {
    const reason = without('ncclPutSignal')
    if (reason !== undefined) return skip(reason)
    const opened = await open()
    const [mine, theirs] = opened as [Opened, Opened]
    write(0, mine.memory, [1, 2, 3])
    write(1, theirs.memory, [7, 8, 9])
    const [from, to] = [streamOf(0), streamOf(1)]
    const channel = { signal: 0, context: 0 }
    const put = (options: object) =>
      communicatorOf(0).putSignal(mine.memory, { peer: 1, window: mine.window, stream: from, ...options })
    put({ count: 2 })
    communicatorOf(1).waitSignal({ peer: 0, ...channel, count: 1 }, { stream: to })
    wait()
    expect(read(1, theirs.memory, 3)).toEqual([1, 2, 9])
    put({ ...channel, count: 1, offset: byteLength - 4 })
    communicatorOf(1).waitSignal({ peer: 0 }, { stream: to })
    wait()
    put({})
    communicatorOf(0).signal({ peer: 1, stream: from })
    communicatorOf(1).waitSignal({ peer: 0, ...channel, count: 2 }, { stream: to })
    wait()
    expect(read(1, theirs.memory, length)).toEqual([1, 2, 3, ...Array(length - 3).fill(0)])
  })

  test('accept whole sources that lie in a symmetric window', async ({ skip }) => {
    const reason = without('ncclPutSignal')
    if (reason !== undefined) return skip(reason)
    const own = await Communicator.initAll([0, 1])
    const memory = await Promise.all(own.map((one) => one.allocate(3 * 4096)))
    const part = (rank: number, from: number, bytes: number) => {
      const range = (memory[rank] as NcclMemory)[memoryProtocol]
      return { [memoryProtocol]: { ...range, address: range.address + BigInt(from), byteLength: bytes } }
    }
    const register = (symmetric: boolean) =>
      Promise.all(own.map((one, rank) => one.registerWindow(part(rank, 4096, 4096), { symmetric })))
    const mine = new Error('mine')
    const put = (window: Window, from: number, bytes: number) => () =>
      group(() => {
        const options = { peer: 1, window, dtype: 'u8', stream: streamOf(0) } as const
        own[0]?.putSignal(part(0, from, bytes) as never, options)
        throw mine
      })
    const windows = await register(true)
    for (const [from, bytes] of [
      [4096, 4096],
      [4096, 1],
      [8191, 1],
    ] as const) {
      expect(put(windows[0] as Window, from, bytes)).toThrow(mine)
    }
    for (const [from, bytes] of [
      [4095, 1],
      [4095, 2],
      [8191, 2],
      [8192, 1],
    ] as const) {
      expect(put(windows[0] as Window, from, bytes)).toThrow('source must lie in a symmetric window')
    }
    const target = windows[0] as Window
    await Promise.all(windows.map((window) => window.dispose()))
    expect(put(target, 4096, 1)).toThrow(DisposedError)
    const loose = await register(false)
    expect(put(loose[0] as Window, 4096, 1)).toThrow('source must lie in a symmetric window')
    expect(loose.map(({ symmetric }) => symmetric)).toEqual([false, false])
    await Promise.all(loose.map((window) => window.dispose()))
    await Promise.all(own.map((one) => one.destroy()))
    await Promise.all(memory.map((one) => one.free()))
  })

  test('send signals without data, several to several peers, in a group and without blocking', async ({ skip }) => {
    const reason = without('ncclWaitSignal')
    if (reason !== undefined) return skip(reason)
    await open()
    const others = [1, 2]
    group(() => {
      for (const rank of others) {
        communicatorOf(rank).signal({ peer: 0, stream: streamOf(rank) })
        communicatorOf(rank).signal({ peer: 0, stream: streamOf(rank) })
      }
      communicatorOf(0).waitSignal(
        others.map((peer) => ({ peer, count: 2 })),
        { stream: streamOf(0) },
      )
    })
    wait()
    await groupOffThread(() => {
      communicatorOf(1).signal({ peer: 0, signal: 0, context: 0, stream: streamOf(1) })
      communicatorOf(0).waitSignal([{ peer: 1, count: 1, signal: 0, context: 0 }], { stream: streamOf(0) })
    })
    wait()
  })

  test('refuse sources outside of windows, puts beyond the window, and wrong signals', async ({ skip }) => {
    const reason = without('ncclPutSignal')
    if (reason !== undefined) return skip(reason)
    const [first, second] = (await open()) as [Opened, Opened]
    const [communicator, stream] = [communicatorOf(0), streamOf(0)]
    const { memory, window } = first
    const outside = TestMemory.zeros(0, 'f32', 4)
    cleanUp.push(() => outside.dispose())
    const put =
      (options: object, source: object = memory) =>
      () =>
        communicator.putSignal(source as NcclMemory, { peer: 1, window, stream, ...options })
    expect(put({}, outside)).toThrow('symmetric window')
    expect(put({ offset: 4 })).toThrow('must leave room')
    expect(put({ offset: byteLength - 4, count: 2 })).toThrow('must leave room')
    expect(put({ count: length + 1 })).toThrow(RangeError)
    expect(put({ peer: deviceCount })).toThrow(RangeError)
    expect(put({ offset: -1 })).toThrow(RangeError)
    expect(put({ window: memory })).toThrow('window must be a Window')
    expect(put({ window: second.window })).toThrow('must be one of this communicator')
    expect(() => communicator.signal({ peer: 1, signal: -1, stream })).toThrow(RangeError)
    expect(() => communicator.signal({ peer: 1, context: 0.5, stream })).toThrow(TypeError)
    expect(() => communicator.waitSignal([], { stream })).toThrow('empty')
    expect(() => communicator.waitSignal({ peer: 1, count: 0 }, { stream })).toThrow('count must be an integer from 1')
    expect(() => communicator.waitSignal({ peer: 7 }, { stream })).toThrow(RangeError)
    expect(() => communicator.waitSignal(undefined as never, { stream })).toThrow(TypeError)
    await window.dispose()
    expect(put({})).toThrow(DisposedError)
  })
})
