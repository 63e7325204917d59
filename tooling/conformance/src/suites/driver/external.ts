import assert from 'node:assert/strict'
import { fstatSync, ftruncateSync, mkdtempSync, openSync, readlinkSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeviceBuffer, DisposedError, StatusError } from '@shoal/driver'
import { DmaBuf, ExternalMemory, ExternalSemaphore, signalSemaphores, waitSemaphores } from '@shoal/driver/external'
import { fillNode, Graph, signalSemaphoresNode, waitSemaphoresNode } from '@shoal/driver/graph'
import { MipmappedArray } from '@shoal/driver/texture'
import type { CaseContext, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

/** Creates a file that stands for another library's memory, and functions that read and write it. */
function memoryFile(t: CaseContext, byteLength: number) {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-external-'))
  t.defer(() => rmSync(folder, { recursive: true, force: true }))
  const descriptor = openSync(join(folder, 'memory'), 'w+')
  ftruncateSync(descriptor, byteLength)
  return { handle: descriptor, other: openSync(join(folder, 'memory'), 'r+') }
}

export const externalSuite: Suite = {
  name: 'driver external memory and semaphores',
  cases: [
    {
      name: 'device memory has a dma-buf where the device says so',
      run(t) {
        const { device } = t
        const page = 64 * 1024
        const buffer = t.own(DeviceBuffer.zeros(device, 'u8', 32 * page))
        const part = buffer.slice(page, 3 * page)
        if (device.attribute('DMA_BUF_SUPPORTED') === 0) {
          assert.throws(() => DmaBuf.export(device, part), { status: 801 })
        } else {
          const dmaBuf = t.own(DmaBuf.export(device, part))
          assert.equal(dmaBuf.byteLength, 2 * page)
          assert.match(readlinkSync(`/proc/self/fd/${dmaBuf.descriptor}`), /dmabuf/)
          const { descriptor } = dmaBuf
          dmaBuf.dispose()
          assert.throws(() => dmaBuf.descriptor, DisposedError)
          assert.throws(() => fstatSync(descriptor), { code: 'EBADF' })
        }
        assert.throws(() => DmaBuf.export(device, buffer.slice(1, 3)), { status: 1 })
        assert.throws(() => DmaBuf.export(device, part, { mapping: 'nvlink' as never }), TypeError)
      },
    },
    {
      name: 'caches and orders of writes are the context’s: what the device has not is refused',
      run(t) {
        const context = t.device.primaryContext
        assert.equal(typeof t.device.execAffinitySupported, 'boolean')
        context.resetPersistingL2Cache()
        // A driver that cannot flush on the host reports this.
        const hostFlushes = (t.device.attribute('GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS') & 1) !== 0
        for (const scope of ['owner', 'all-devices'] as const) {
          if (hostFlushes) context.flushRdmaWrites(scope)
          else assert.throws(() => context.flushRdmaWrites(scope), StatusError)
        }
        assert.throws(() => context.flushRdmaWrites('everyone' as never), TypeError)
      },
    },
    {
      name: 'external memory stays usable until its last buffer is disposed of',
      // Only Vulkan makes descriptors that a GPU accepts.
      requires: { only: 'software' },
      async run(t) {
        const length = t.random.integer(100, 5000)
        const { handle, other } = memoryFile(t, length * 4)
        const memory = ExternalMemory.import(t.device, { type: 'opaque-fd', handle, byteLength: length * 4 })
        const buffer = t.own(memory.map('f32'))
        memory.dispose()
        assert.throws(() => memory.map('u8'), DisposedError)
        const values = Float32Array.from({ length }, (_, index) => index * 0.25)
        buffer.copyFromSync(values)
        const seen = new Float32Array(length)
        readSync(other, seen, 0, length * 4, 0)
        assertSameBits(seen, values, 'what the device wrote')
        writeSync(
          other,
          values.map((value) => -value),
          0,
          length * 4,
          0,
        )
        assertSameBits(
          await buffer.toArray(),
          values.map((value) => -value),
          'what the other side wrote',
        )
      },
    },
    {
      name: 'an external image becomes a mipmapped array, which keeps the external memory alive',
      requires: { only: 'software' },
      async run(t) {
        const byteLength = 1 << 20
        const { handle } = memoryFile(t, byteLength)
        const memory = ExternalMemory.import(t.device, { type: 'opaque-fd', handle, byteLength })
        const shape = { width: 64, height: 32, format: 'f32', levels: 3 } as const
        const image = t.own(MipmappedArray.fromExternal(memory, { ...shape, byteOffset: 4096 }))
        const again = t.own(MipmappedArray.fromExternal(memory, { ...shape, byteOffset: 4096 }))
        assert.throws(() => MipmappedArray.fromExternal(memory, { ...shape, byteOffset: byteLength - 64 }), StatusError)
        memory.dispose()
        for (let level = 0; level < 3; level += 1) {
          const { width, height } = image.level(level)
          const values = Float32Array.from({ length: width * height }, () => t.random.signed())
          image.level(level).copyFromSync(values)
          assertSameBits(
            await again.level(level).toArray(),
            values,
            `level ${level} by another array in the same memory`,
          )
        }
      },
    },
    {
      name: 'streams and graphs wait for and signal external semaphores',
      requires: { only: 'software' },
      async run(t) {
        const { handle } = memoryFile(t, 8)
        const semaphore = t.own(ExternalSemaphore.import(t.device, { type: 'timeline-fd', handle }))
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const other = t.own(t.device.createStream({ nonBlocking: true }))
        const memory = t.own(DeviceBuffer.zeros(t.device, 'u8', 4))
        const graph = t.own(Graph.create(t.device))
        const wait = graph.add(waitSemaphoresNode([{ semaphore, value: 1 }]))
        const fill = graph.add(fillNode(memory, 9), { dependencies: [wait] })
        graph.add(signalSemaphoresNode([{ semaphore, value: 2n }]), { dependencies: [fill] })
        const exec = t.own(graph.instantiate())
        exec.launch(stream)
        waitSemaphores([{ semaphore, value: 2 }], { stream: other })
        assert.equal(other.query(), false)
        const third = t.own(t.device.createStream({ nonBlocking: true }))
        signalSemaphores([{ semaphore, value: 1 }], { stream: third })
        await other.synchronize()
        assert.deepEqual([...memory.toArraySync()], [9, 9, 9, 9])
      },
    },
    {
      name: 'what is wrong is refused by name, and the descriptor stays the caller’s',
      run(t) {
        assert.throws(
          () => ExternalMemory.import(t.device, { type: 'opaque-fd', handle: -1, byteLength: 4 }),
          /handle must be/,
        )
        assert.throws(
          () => ExternalMemory.import(t.device, { type: 'opaque-fd', handle: 5, byteLength: 0 }),
          /byteLength must be/,
        )
        assert.throws(() => ExternalSemaphore.import(t.device, { type: 'fence' as never, handle: 5 }), /type must be/)
        // A Windows handle cannot work on Linux.
        assert.throws(
          () => ExternalMemory.import(t.device, { type: 'd3d12-heap', handle: 8n, byteLength: 64 }),
          StatusError,
        )
        assert.throws(() => waitSemaphores([]), RangeError)
      },
    },
  ],
}
