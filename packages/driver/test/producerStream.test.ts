import { type MemoryLike, type MemoryRange, memoryProtocol } from '@shoal/types'
import { expect, test, vi } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim' })
const { Device, DeviceBuffer, Module, PinnedBuffer } = await import('@shoal/driver')
const { Graph, kernelNode } = await import('@shoal/driver/graph')

const device = Device.get(0)
const module = Module.loadSync(
  device,
  `.version 7.0
.target sm_70
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  ld.global.u32 %r1, [%rd1];
  st.global.u32 [%rd2], %r1;
  ret;
}`,
)
const kernel = module.kernel('copy', ['ptr', 'ptr'])
const once = { grid: 1, block: 1 }

/**
 * Four bytes that become sevens when the gate opens, with their producer stream. Dispose of it first, because it keeps
 * the device busy.
 */
class Produced implements MemoryLike, Disposable {
  readonly stream = device.createStream({ nonBlocking: true })
  readonly #buffer = DeviceBuffer.zeros(device, 'u8', 4)
  readonly #gate = PinnedBuffer.allocate(device, 'u32', 1)
  isPending = true

  constructor() {
    this.#gate.array[0] = 0
    this.stream.waitValue(this.#gate, 1)
    this.#buffer.fill(7, { stream: this.stream })
  }

  get [memoryProtocol](): MemoryRange {
    return { ...this.#buffer[memoryProtocol], version: 1, stream: this.isPending ? this.stream.handle : null }
  }

  open(): void {
    this.#gate.array[0] = 1
  }

  [Symbol.dispose](): void {
    this.open()
    this.stream.synchronizeSync()
    for (const each of [this.stream, this.#buffer, this.#gate]) each.dispose()
  }
}

const sevens = 0x07070707

test('a launch waits for pending work on an argument', async () => {
  using stream = device.createStream({ nonBlocking: true })
  using out = DeviceBuffer.zeros(device, 'u32', 1)
  using from = new Produced()
  kernel.launch({ ...once, stream }, from, out)
  expect(stream.query()).toBe(false)
  from.open()
  expect(await out.toArray({ stream })).toEqual(Uint32Array.of(sevens))
})

test('a prepared launch waits each time, and only while work is pending', async () => {
  using stream = device.createStream({ nonBlocking: true })
  using out = DeviceBuffer.zeros(device, 'u32', 1)
  using from = new Produced()
  const prepared = kernel.prepare({ ...once, stream }, from, out)
  prepared.launch()
  expect(stream.query()).toBe(false)
  from.open()
  expect(await out.toArray({ stream })).toEqual(Uint32Array.of(sevens))
  // Set while work was pending, and launched after that work, together with memory whose work is still pending.
  using other = new Produced()
  prepared.set(0, other)
  prepared.set(0, from)
  from.isPending = false
  prepared.launch()
  await vi.waitUntil(() => stream.query(), { timeout: 60_000 })
  expect(out.toArraySync({ stream })).toEqual(Uint32Array.of(sevens))
})

test('a graph node waits for no producer, and neither does the next node', () => {
  using stream = device.createStream({ nonBlocking: true })
  using out = DeviceBuffer.zeros(device, 'u32', 1)
  using graph = Graph.create(device)
  using from = new Produced()
  graph.add(kernelNode(kernel, once, from, out))
  graph.add(kernelNode(kernel, once, out, out))
  using executable = graph.instantiate()
  executable.launch(stream)
  stream.synchronizeSync()
  kernel.launch({ ...once, stream }, out, out)
  stream.synchronizeSync()
  expect(out.toArraySync({ stream })).toEqual(Uint32Array.of(0))
})
