import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CUresult, cuDevicePrimaryCtxSetFlags } from '@shoal/cuda-sys/driver'
import {
  DeviceBuffer,
  defineArray,
  defineTuple,
  driverVersion,
  Module,
  platformHandleKind,
  StatusError,
  statusText,
} from '@shoal/driver'
import { CreatedContext, DeviceResource, GreenContext } from '@shoal/driver/context'
import { onLog, startProfiler, stopProfiler, writeLogs } from '@shoal/driver/diagnostics'
import {
  captureStatus,
  eventRecordNode,
  eventWaitNode,
  Graph,
  graphMemoryUsage,
  memoryOperationsNode,
  resetGraphMemoryHigh,
} from '@shoal/driver/graph'
import { Library } from '@shoal/driver/library'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { scalePtx } from './library.js'

/** Returns a new folder, which is removed when the case ends. */
function folderOf(t: CaseContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-surface-'))
  t.defer(() => rmSync(folder, { recursive: true }))
  return folder
}

const start: ConformanceCase = {
  name: 'statuses have names and descriptions, and handles a kind',
  run() {
    const { name, description } = statusText(2)
    assert.equal(name, 'CUDA_ERROR_OUT_OF_MEMORY')
    assert.ok(description.length > 0)
    assert.equal(platformHandleKind(), 'posix-fd')
  },
}

const flags: ConformanceCase = {
  name: 'flags of the primary context are set while it is in use, and a context without a limit has no affinity',
  run(t) {
    t.own(t.device.createStream())
    const { flags: before } = t.device.primaryContext
    assert.equal(t.device.primaryContextState.active, true)
    t.device.setPrimaryContextFlags(before)
    assert.deepEqual(t.device.primaryContext.flags, before)
    // A context reports this flag, and its primary context takes no such flag.
    assert.equal(before.mapHost, true)
    assert.equal(cuDevicePrimaryCtxSetFlags(t.device.ordinal, 8), CUresult.CUDA_ERROR_INVALID_VALUE)
    t.defer(() => t.device.primaryContext.setFlags(before))
    t.device.primaryContext.setFlags({ synchronousMemory: true, coredump: true })
    const off = { scheduling: 'auto', keepLocalMemory: false, coredump: false, userCoredump: false }
    assert.deepEqual(t.device.primaryContext.flags, { ...off, mapHost: true, synchronousMemory: true })
    assert.equal(t.device.primaryContextState.flags & 0x80, 0x80)
    const context = t.own(CreatedContext.create(t.device))
    try {
      assert.ok(context.execAffinity >= 1)
    } catch (error) {
      assert.ok(error instanceof StatusError, String(error))
      t.note(`execAffinity without a limit: ${error.code}`)
    }
  },
}

const elements: ConformanceCase = {
  name: 'buffers of arrays and tuples arrive as they were sent',
  async run(t) {
    const Triple = defineArray('f32', 3)
    const Pair = defineTuple(['i32', 'f64'])
    const triples = t.own(
      DeviceBuffer.from(
        t.device,
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        { dtype: Triple },
      ),
    )
    assert.deepEqual(await triples.toArray(), [
      [1, 2, 3],
      [4, 5, 6],
    ])
    const pairs = t.own(
      DeviceBuffer.from(
        t.device,
        [
          [1, 0.5],
          [-7, 1e300],
        ],
        { dtype: Pair },
      ),
    )
    assert.deepEqual(await pairs.toArray(), [
      [1, 0.5],
      [-7, 1e300],
    ])
  },
}

const allocator: ConformanceCase = {
  name: 'the allocator of a device serves allocateOn until it is taken away',
  async run(t) {
    const pool = t.own(t.device.createCachingPool())
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const { allocator: before } = t.device
    t.defer(() => {
      t.device.allocator = before
    })
    t.device.allocator = pool
    const buffer = DeviceBuffer.allocateOn(stream, 'u32', 1000)
    buffer.fill(5, { stream })
    assert.equal((await buffer.toArray({ stream }))[999], 5)
    assert.equal(pool.statistics.allocations, 1)
    buffer.dispose()
  },
}

const kernels: ConformanceCase = {
  name: 'attributes and cache preferences of kernels are set, and an unknown function is not found',
  async run(t) {
    const module = t.own(await Module.load(t.device, scalePtx))
    const kernel = module.kernel('nothing', [])
    kernel.setAttribute('PREFERRED_SHARED_MEMORY_CARVEOUT', 25)
    assert.equal(kernel.attribute('PREFERRED_SHARED_MEMORY_CARVEOUT'), 25)
    const library = t.own(await Library.load(t.device, scalePtx))
    library.setKernelCacheConfig('nothing', 'shared')
    assert.throws(() => library.unifiedFunction('nothing here'), StatusError)
  },
}

const graphs: ConformanceCase = {
  name: 'a graph records and waits for events, writes words, and is drawn',
  async run(t) {
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const event = t.own(t.device.createEvent())
    const words = t.own(DeviceBuffer.zeros(t.device, 'u32', 2))
    const graph = t.own(Graph.create(t.device))
    const record = graph.add(eventRecordNode(event))
    const wait = graph.add(eventWaitNode(event), { dependencies: [record] })
    const write = memoryOperationsNode([{ operation: 'write', memory: words.slice(1), value: 7 }])
    graph.add(write, { dependencies: [wait] })
    assert.equal(captureStatus(stream), 'none')
    t.own(graph.instantiate()).launch(stream)
    await stream.synchronize()
    assert.deepEqual([...(await words.toArray())], [0, 7])
    const drawing = join(folderOf(t), 'graph.dot')
    graph.writeDot(drawing)
    assert.match(readFileSync(drawing, 'utf8'), /digraph/)
    resetGraphMemoryHigh(t.device)
    const { used, usedHigh } = graphMemoryUsage(t.device)
    assert.equal(usedHigh, used)
  },
}

const green: ConformanceCase = {
  name: 'a green context has a handle for other libraries',
  run(t) {
    const all = DeviceResource.of(t.device)
    const [group] = all.split(Math.max(1, Math.floor(all.multiprocessors / 4)), { groups: 1 }).groups
    assert(group !== undefined)
    const part = t.own(GreenContext.create(group))
    assert.ok(part.contextHandle > 0n)
  },
}

const profiler: ConformanceCase = {
  name: 'the profiler starts and stops, and the log of the driver goes to a file and to a function',
  run(t) {
    startProfiler(t.device)
    stopProfiler(t.device)
    if (!driverVersion().atLeast(12, 9)) t.skip('the driver logs from CUDA 12.9')
    const lines: string[] = []
    const listening = onLog((more) => lines.push(more))
    listening[Symbol.dispose]()
    assert.ok(writeLogs(join(folderOf(t), 'driver.log')) >= 0)
  },
}

export const surfaceSuite: Suite = {
  name: 'driver: further calls',
  cases: [start, flags, elements, allocator, kernels, graphs, green, profiler],
}
