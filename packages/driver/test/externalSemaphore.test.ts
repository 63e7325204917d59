import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DisposedError, StatusError } = await import('@shoal/types')
const { DeviceBuffer, Stream } = await import('@shoal/driver/shared')
const { ExternalSemaphore, signalSemaphores, waitSemaphores } = await import('@shoal/driver/external')
const { Graph, emptyNode, fillNode, signalSemaphoresNode, waitSemaphoresNode } = await import('@shoal/driver/graph')
const { driver } = await import('@shoal/cuda-sys/driver')
const { bindCall, slots64 } = await import('@shoal/ffi/calls')
const { TestDevice, delay } = await import('./support/testDevice.js')

const device = new TestDevice(0)
void device.primaryContext
const folder = mkdtempSync(join(tmpdir(), 'shoal-external-'))
let files = 0

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Creates a memory file, as another library would export it. */
function memoryFile(byteLength: number): { readonly descriptor: number; readonly path: string } {
  files += 1
  const path = join(folder, `memory${files}`)
  const descriptor = openSync(path, 'w+')
  ftruncateSync(descriptor, byteLength)
  return { descriptor, path }
}

// The software device's library is linked with the C library.
const eventfd = bindCall(driver.rawSymbol('eventfd') as bigint, 2, 'i32', 'eventfd')

/** Creates a descriptor that is signaled or not. */
function eventDescriptor(): number {
  slots64[0] = 0n
  slots64[1] = 0n
  return eventfd() as number
}

describe('ExternalSemaphore', () => {
  test('with a timeline: streams wait for values and signal values', async () => {
    const { descriptor, path } = memoryFile(8)
    using semaphore = ExternalSemaphore.import(device, { type: 'timeline-fd', handle: descriptor })
    expect(semaphore.device).toBe(device)
    using stream = Stream.create(device, { nonBlocking: true })
    using other = Stream.create(device, { nonBlocking: true })
    using memory = DeviceBuffer.zeros(device, 'u8', 4)
    waitSemaphores([{ semaphore, value: 5n }], { stream })
    memory.fill(1, { stream })
    signalSemaphores([{ semaphore, value: 6 }], { stream })
    signalSemaphores([{ semaphore, value: 4 }], { stream: other })
    await other.synchronize()
    expect(stream.query()).toBe(false)
    // Acts as the other library.
    const file = openSync(path, 'r+')
    writeSync(file, BigUint64Array.of(5n), 0, 8, 0)
    await stream.synchronize()
    const value = new BigUint64Array(1)
    readSync(file, value, 0, 8, 0)
    closeSync(file)
    expect([value[0], memory.toArraySync()[0]]).toEqual([6n, 1])
  })

  test('without a timeline: a wait consumes the signal', async () => {
    using one = ExternalSemaphore.import(device, { type: 'opaque-fd', handle: eventDescriptor() })
    using two = ExternalSemaphore.import(device, { type: 'opaque-fd', handle: eventDescriptor() })
    using stream = Stream.create(device, { nonBlocking: true })
    using other = Stream.create(device, { nonBlocking: true })
    waitSemaphores([{ semaphore: one }, { semaphore: two }], { stream })
    signalSemaphores([{ semaphore: one }], { stream: other })
    await other.synchronize()
    expect(stream.query()).toBe(false)
    signalSemaphores([{ semaphore: two }], { stream: other })
    await stream.synchronize()
    waitSemaphores([{ semaphore: one }], { stream })
    delay(other, 20)
    expect(stream.query()).toBe(false)
    signalSemaphores([{ semaphore: one }], { stream: other })
    await stream.synchronize()
  })

  test('in graphs: added and captured nodes signal and wait at every launch', async () => {
    const [first, last] = [memoryFile(8), memoryFile(8)]
    using ready = ExternalSemaphore.import(device, { type: 'timeline-fd', handle: first.descriptor })
    using done = ExternalSemaphore.import(device, { type: 'timeline-fd', handle: last.descriptor })
    using stream = Stream.create(device, { nonBlocking: true })
    using other = Stream.create(device, { nonBlocking: true })
    using memory = DeviceBuffer.zeros(device, 'u8', 4)
    using byHand = Graph.create(device)
    const wait = byHand.add(waitSemaphoresNode([{ semaphore: ready, value: 1 }]))
    const fill = byHand.add(fillNode(memory, 5), { dependencies: [wait] })
    const signal = byHand.add(signalSemaphoresNode([{ semaphore: done, value: 2n }]), { dependencies: [fill] })
    expect(byHand.nodes.map(({ type }) => type)).toEqual(['ext-semas-wait', 'memset', 'ext-semas-signal'])
    using captured = Graph.capture(stream, () => {
      waitSemaphores([{ semaphore: ready, value: 1 }], { stream })
      memory.fill(5, { stream })
      signalSemaphores([{ semaphore: done, value: 2 }], { stream })
    })
    expect(captured.nodes.map(({ type }) => type)).toEqual(['ext-semas-wait', 'memset', 'ext-semas-signal'])
    const file = openSync(last.path, 'r+')
    for (const graph of [byHand, captured]) {
      using exec = graph.instantiate()
      for (let turn = 0; turn < 2; turn += 1) {
        memory.fillSync(0)
        signalSemaphores([{ semaphore: ready, value: 0 }], { stream: other })
        writeSync(file, BigUint64Array.of(0n), 0, 8, 0)
        await other.synchronize()
        exec.launch(stream)
        expect(stream.query()).toBe(false)
        signalSemaphores([{ semaphore: ready, value: 1 }], { stream: other })
        await stream.synchronize()
        expect([...memory.toArraySync()]).toEqual([5, 5, 5, 5])
        const value = new BigUint64Array(1)
        readSync(file, value, 0, 8, 0)
        expect(value[0]).toBe(2n)
      }
    }
    // Nodes accept other descriptions of their kind.
    signal.update(signalSemaphoresNode([{ semaphore: done, value: 9 }]))
    using exec = byHand.instantiate()
    exec.launch(stream)
    await stream.synchronize()
    const value = new BigUint64Array(1)
    readSync(file, value, 0, 8, 0)
    closeSync(file)
    expect(value[0]).toBe(9n)
    expect(() => signal.update(emptyNode())).toThrow(/description must be of a ext-semas-signal node/)
    done.dispose()
    expect(() => exec.launch(stream)).toThrow(DisposedError)
  })

  test('is released after the work that uses it completes', async () => {
    using stream = Stream.create(device, { nonBlocking: true })
    for (const end of [
      (semaphore: { disposeSync(): void }) => semaphore.disposeSync(),
      async (semaphore: AsyncDisposable) => await semaphore[Symbol.asyncDispose](),
    ]) {
      const semaphore = ExternalSemaphore.import(device, { type: 'opaque-fd', handle: eventDescriptor() })
      delay(stream, 20)
      signalSemaphores([{ semaphore }], { stream })
      await end(semaphore)
      expect(stream.query()).toBe(true)
      expect(() => semaphore.handle).toThrow(DisposedError)
    }
  })

  test('refuses wrong arguments by name', () => {
    using semaphore = ExternalSemaphore.import(device, { type: 'opaque-fd', handle: eventDescriptor() })
    using stream = Stream.create(device)
    const second = new TestDevice(1)
    using foreign = ExternalSemaphore.import(second, { type: 'opaque-fd', handle: eventDescriptor() })
    for (const [act, message] of [
      [
        () => ExternalSemaphore.import(device, { type: 'fence', handle: 3 } as never),
        /^ExternalSemaphore.import: type must be/,
      ],
      [() => ExternalSemaphore.import(device, { type: 'opaque-fd', handle: 3n }), /handle must be an integer/],
      [() => ExternalSemaphore.import(device, { type: 'opaque-fd' } as never), /handle must be an integer/],
      [() => signalSemaphores([], { stream }), /^signalSemaphores: operations must be 1 to 1024 operations/],
      [() => signalSemaphores(3 as never), /operations must be an array of operations/],
      [
        () => waitSemaphores([{ semaphore: 3 as never }]),
        /^waitSemaphores: operations\[0\].semaphore must be an ExternalSemaphore/,
      ],
      [() => waitSemaphores([{ semaphore: stream as never }]), /semaphore must be an ExternalSemaphore/],
      [() => waitSemaphores([{ semaphore, value: -1 }]), /operations\[0\].value must be an integer from 0/],
      [() => waitSemaphores([{ semaphore, value: 2n ** 64n }]), /value must be an integer from 0 to 2\^64 - 1/],
      [() => waitSemaphores([{ semaphore, value: 0.5 }]), /value must be an integer/],
      [
        () => waitSemaphores([{ semaphore }, { semaphore: foreign }]),
        /operations\[1\].semaphore must be of the same context/,
      ],
      [() => waitSemaphores([{ semaphore: foreign }], { stream }), /stream must be one of device 1/],
      [() => waitSemaphores([{ semaphore }], { where: 1 } as never), /options must have only the keys stream/],
      [() => waitSemaphoresNode([]), /^waitSemaphoresNode: operations must be/],
      [() => signalSemaphoresNode([{ semaphore, after: 1 } as never]), /operations\[0\] must have only the keys/],
    ] as const) {
      expect(act).toThrow(message)
    }
    expect(() => ExternalSemaphore.import(device, { type: 'd3d12-fence', handle: 3n })).toThrow(
      'CUDA_ERROR_NOT_SUPPORTED',
    )
    const { descriptor } = memoryFile(4)
    // This file is not an eventfd and is too short for a value.
    expect(() => ExternalSemaphore.import(device, { type: 'opaque-fd', handle: descriptor })).toThrow(StatusError)
    expect(() => ExternalSemaphore.import(device, { type: 'timeline-fd', handle: descriptor })).toThrow(StatusError)
    closeSync(descriptor)
    semaphore.dispose()
    expect(() => waitSemaphores([{ semaphore }])).toThrow(DisposedError)
    expect(() => signalSemaphoresNode([{ semaphore }])).toThrow(DisposedError)
  })
})
