import assert from 'node:assert/strict'
import { cuCtxGetCurrent } from '@shoal/cuda-sys/driver'
import { DeviceBuffer } from '@shoal/driver'
import {
  Communicator,
  communicatorConfigFields,
  group,
  ncclHeaderVersion,
  ncclSupports,
  ncclVersion,
  UniqueId,
} from '@shoal/nccl'
import { DisposedError, Feature } from '@shoal/types'
import type { ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { assertFreeLoop } from '../../support/eventLoop/free.js'
import { at, makeRanks, together, upload } from './ranks.js'

const versions: ConformanceCase = {
  name: 'the library tells its version',
  run(t) {
    assert.match(ncclVersion().toString(), /^2\.\d+\.\d+$/)
    assert.equal(ncclSupports(Feature.ncclSplit), ncclVersion().atLeast(2, 18))
    assert.ok(communicatorConfigFields().includes('blocking'))
    t.note(`NCCL ${ncclVersion()}, header ${ncclHeaderVersion()}, config: ${communicatorConfigFields()}`)
  },
}

const ids: ConformanceCase = {
  name: 'unique ids differ and survive their copies',
  run() {
    const id = UniqueId.create()
    assert.equal(id.equals(UniqueId.create()), false)
    assert.equal(UniqueId.fromBytes(id.toBytes()).equals(id), true)
    assert.equal(UniqueId.fromBase64(String(JSON.parse(JSON.stringify(id)))).equals(id), true)
  },
}

function currentContext(): bigint {
  const out = new BigUint64Array(1)
  assert.equal(cuCtxGetCurrent(out), 0)
  return at([...out], 0)
}

const initAll: ConformanceCase = {
  name: 'initAll and destroy leave the event loop free and the current context alone',
  timeout: 120_000,
  async run(t) {
    ncclVersion() // loads the library outside of the measured time
    const before = currentContext()
    let took = 0
    const nothing = async () => {}
    const initAndDestroy = async () => {
      const start = performance.now()
      const communicators = await Communicator.initAll(t.devices)
      took = performance.now() - start
      for (const [rank, communicator] of communicators.entries()) {
        assert.deepEqual(
          [communicator.rank, communicator.worldSize, communicator.deviceOrdinal],
          [rank, t.devices.length, at(t.devices, rank).ordinal],
        )
        assert.equal(communicator.asyncError(), undefined)
      }
      await Promise.all(communicators.map((communicator) => communicator.destroy()))
    }
    const { longest } = await assertFreeLoop(t, nothing, initAndDestroy, { p99: 100, longest: 100 })
    t.note(
      `initAll of ${t.devices.length}: ${took.toFixed(0)} ms; longest stall of the event loop ${longest.toFixed(1)} ms`,
    )
    assert.equal(currentContext(), before)
  },
}

const everyNumberOfRanks: ConformanceCase = {
  name: 'communicators over every number of devices, in either order, one after the other',
  timeout: 180_000,
  async run(t) {
    for (let count = 1; count <= t.devices.length; count += 1) {
      for (const devices of [t.devices.slice(0, count), t.devices.slice(0, count).reverse()]) {
        const ranks = await makeRanks(t, devices)
        const buffers = upload(t, ranks, 'i32', () => Int32Array.of(1, 2, 3))
        await together(ranks, ({ communicator, stream, rank }) =>
          communicator.allReduce(at(buffers, rank), at(buffers, rank), { stream }),
        )
        for (const buffer of buffers)
          assertSameBits(await buffer.toArray(), Int32Array.of(count, 2 * count, 3 * count), 'sum')
      }
    }
  },
}

const twoCommunicators: ConformanceCase = {
  name: 'two communicators over the same devices',
  async run(t) {
    const [first, second] = [await makeRanks(t), await makeRanks(t)]
    const a = upload(t, first, 'f32', () => Float32Array.of(1))
    const b = upload(t, second, 'f32', () => Float32Array.of(10))
    for (let round = 0; round < 3; round += 1) {
      await together(first, ({ communicator, stream, rank }) =>
        communicator.allReduce(at(a, rank), at(a, rank), { stream }),
      )
      await together(second, ({ communicator, stream, rank }) =>
        communicator.allReduce(at(b, rank), at(b, rank), { stream }),
      )
    }
    const factor = first.length ** 3
    for (const buffer of a) assertSameBits(await buffer.toArray(), Float32Array.of(factor), 'first')
    for (const buffer of b) assertSameBits(await buffer.toArray(), Float32Array.of(10 * factor), 'second')
  },
}

const initRank: ConformanceCase = {
  name: 'initRank: ranks that join one by one from the same process',
  requires: { devices: 2 },
  timeout: 120_000,
  async run(t) {
    const id = UniqueId.create()
    const communicators = await Promise.all(
      t.devices.map((device, rank) => Communicator.initRank({ device, rank, worldSize: t.devices.length, id })),
    )
    const buffers = t.devices.map((device) => t.own(DeviceBuffer.from(device, Float64Array.of(0.5, 0.25))))
    const streams = t.devices.map((device) => t.own(device.createStream()))
    group(() => {
      for (const [rank, communicator] of communicators.entries()) {
        communicator.allReduce(at(buffers, rank), at(buffers, rank), { op: 'sum', stream: at(streams, rank) })
      }
    })
    for (const stream of streams) await stream.synchronize()
    const n = t.devices.length
    for (const buffer of buffers) assertSameBits(await buffer.toArray(), Float64Array.of(0.5 * n, 0.25 * n), 'sum')
    await Promise.all(communicators.map((communicator) => communicator.destroy()))
  },
}

const finalizeAndDestroy: ConformanceCase = {
  name: 'finalize, then destroy; destroy twice; use afterwards is refused',
  async run(t) {
    const communicators = await Communicator.initAll(t.devices)
    await Promise.all(communicators.map((communicator) => communicator.finalize()))
    const buffer = t.own(DeviceBuffer.zeros(t.device, 'f32', 4))
    const stream = t.own(t.device.createStream())
    const communicator = at(communicators, 0)
    assert.throws(() => communicator.allReduce(buffer, buffer, { stream }), DisposedError)
    await Promise.all(communicators.flatMap((one) => [one.destroy(), one.destroy()]))
    await communicator.abort()
    assert.throws(() => communicator.asyncError(), DisposedError)
    assert.throws(() => communicator.handle, DisposedError)
  },
}

const abortFrees: ConformanceCase = {
  name: 'abort ends an operation whose other rank never comes, and frees',
  requires: { devices: 2 },
  timeout: 120_000,
  async run(t) {
    const communicators = await Communicator.initAll(t.devices)
    const streams = t.devices.map((device) => t.own(device.createStream({ nonBlocking: true })))
    const buffers = t.devices.map((device) => t.own(DeviceBuffer.zeros(device, 'f32', 1001)))
    const allReduce = (ranks: number) =>
      group(() => {
        for (const [rank, communicator] of communicators.slice(0, ranks).entries()) {
          communicator.allReduce(at(buffers, rank), at(buffers, rank), { stream: at(streams, rank) })
        }
      })
    allReduce(communicators.length) // connects the ranks
    for (const stream of streams) await stream.synchronize()
    allReduce(1)
    const blockedStream = at(streams, 0)
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.equal(blockedStream.query(), false, 'an all-reduce of one rank alone must not end')
    const aborts = communicators.map((communicator) => communicator.abort())
    assert.equal(at(communicators, 0).destroy(), at(aborts, 0))
    await Promise.all(aborts)
    await blockedStream.synchronize({ timeout: 20_000 })
    const again = await makeRanks(t)
    const fresh = upload(t, again, 'f32', () => Float32Array.of(1))
    await together(again, ({ communicator, stream, rank }) =>
      communicator.allReduce(at(fresh, rank), at(fresh, rank), { stream }),
    )
    for (const buffer of fresh)
      assertSameBits(await buffer.toArray(), Float32Array.of(again.length), 'a new communicator')
  },
}

const wrongDevices: ConformanceCase = {
  name: 'unknown, repeated and no devices are refused',
  async run(t) {
    const count = t.devices.length
    await assert.rejects(Communicator.initAll([count]), RangeError)
    await assert.rejects(Communicator.initAll([0, 0]), RangeError)
    await assert.rejects(Communicator.initAll([]), RangeError)
    const id = UniqueId.create()
    await assert.rejects(Communicator.initRank({ device: count, rank: 0, worldSize: 1, id }), RangeError)
  },
}

const foreignMemory: ConformanceCase = {
  name: 'memory and streams of another device are refused before NCCL is called',
  requires: { devices: 2 },
  async run(t) {
    const ranks = await makeRanks(t)
    const [here, there] = upload(t, ranks, 'f32', () => new Float32Array(8)) as [
      DeviceBuffer<'f32'>,
      DeviceBuffer<'f32'>,
    ]
    const { communicator, stream } = at(ranks, 0)
    const foreign = at(ranks, 1).stream
    assert.throws(() => communicator.allReduce(there, here, { stream }), TypeError)
    assert.throws(() => communicator.allReduce(here, there, { stream }), TypeError)
    assert.throws(() => communicator.allReduce(here, here, { stream: foreign }), TypeError)
    here.dispose()
    assert.throws(() => communicator.allReduce(here, here, { stream }), DisposedError)
  },
}

export const communicatorSuite: Suite = {
  name: 'nccl communicators',
  cases: [
    versions,
    ids,
    initAll,
    everyNumberOfRanks,
    twoCommunicators,
    initRank,
    finalizeAndDestroy,
    abortFrees,
    wrongDevices,
    foreignMemory,
  ],
}
