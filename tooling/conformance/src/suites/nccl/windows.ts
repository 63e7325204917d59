import assert from 'node:assert/strict'
import { DeviceBuffer } from '@shoal/driver'
import { group, groupOffThread, type NcclMemory, ncclVersion, simulateGroup, type Window } from '@shoal/nccl'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { needNccl } from './needNccl.js'
import { at, makeRanks, type Rank, settled, together, upload, zeros } from './ranks.js'

const length = 4096

interface Opened {
  readonly rank: Rank
  readonly memory: NcclMemory
  readonly window: Window
  readonly elements: DeviceBuffer<'f32'>
}

/** Opens a window of `length` floats on each rank. The case closes them. */
async function open(t: CaseContext, ranks: readonly Rank[], value: (rank: number) => number): Promise<Opened[]> {
  const memory = await Promise.all(ranks.map(({ communicator }) => communicator.allocate({ dtype: 'f32', length })))
  t.defer(async () => {
    await Promise.all(memory.map((one) => one.free()))
  })
  const windows = await Promise.all(
    ranks.map(({ communicator, rank }) => communicator.registerWindow(at(memory, rank))),
  )
  t.defer(async () => {
    await Promise.all(windows.map((window) => window.dispose()))
  })
  return ranks.map((rank) => {
    const own = at(memory, rank.rank)
    const elements = DeviceBuffer.view(rank.device, own, 'f32')
    elements.copyFromSync(new Float32Array(length).fill(value(rank.rank)))
    return { rank, memory: own, window: at(windows, rank.rank), elements }
  })
}

const registered: ConformanceCase = {
  name: "NCCL's memory, registered, is memory for operations and copies",
  async run(t) {
    needNccl(t, 21903, 'memory of its own')
    const ranks = await makeRanks(t)
    const memory = await Promise.all(ranks.map(({ communicator }) => communicator.allocate({ dtype: 'f32', length })))
    t.defer(async () => {
      await Promise.all(memory.map((one) => one.free()))
    })
    const registrations = ranks.map(({ communicator, rank }) => t.own(communicator.register(at(memory, rank))))
    const views = ranks.map(({ device, rank }) => DeviceBuffer.view(device, at(memory, rank), 'f32'))
    for (const [rank, view] of views.entries()) view.copyFromSync(new Float32Array(length).fill(rank + 1))
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.allReduce(at(memory, rank), at(memory, rank), { stream }),
    )
    const sum = (ranks.length * (ranks.length + 1)) / 2
    for (const view of views) assertSameBits(await view.toArray(), new Float32Array(length).fill(sum), 'sum')
    // The registration keeps the memory alive until the registration ends.
    await at(memory, 0).free()
    for (const registration of registrations) registration.dispose()
  },
}

const collective: ConformanceCase = {
  name: 'collectives on windows, in place and into another window',
  requires: { devices: 2 },
  async run(t) {
    needNccl(t, 22703, 'windows')
    const ranks = await makeRanks(t)
    const [one, other] = [await open(t, ranks, (rank) => rank + 1), await open(t, ranks, () => 0)]
    const sum = (ranks.length * (ranks.length + 1)) / 2
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.allReduce(at(one, rank).memory, at(other, rank).memory, { stream }),
    )
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.allReduce(at(one, rank).memory, at(one, rank).memory, { stream }),
    )
    for (const { elements } of [...one, ...other]) {
      assertSameBits(await elements.toArray(), new Float32Array(length).fill(sum), 'sum')
    }
  },
}

const peers: ConformanceCase = {
  name: 'a window returns the address at which its device reaches each peer’s memory',
  requires: { devices: 2 },
  async run(t) {
    needNccl(t, 22902, 'pointers to peers on the host')
    const ranks = await makeRanks(t)
    const opened = await open(t, ranks, (rank) => 100 + rank)
    for (const { rank, memory, window } of opened) {
      assert.equal(window.userPointer, memory.address)
      for (const peer of ranks.keys()) {
        const theirs = window.peerMemory(peer)
        if (theirs === undefined) {
          t.note(`rank ${rank.rank} does not reach rank ${peer}`)
          continue
        }
        assert.equal(window.peerPointer(peer, 8), theirs.address + 8n)
        const view = DeviceBuffer.view(rank.device, theirs, 'f32')
        assertSameBits(await view.toArray(), new Float32Array(length).fill(100 + peer), `of rank ${peer}`)
      }
    }
  },
}

const oneSided: ConformanceCase = {
  name: 'each rank puts into the next rank’s window and signals back',
  requires: { devices: 2 },
  async run(t) {
    needNccl(t, 22902, 'one-sided operations')
    const ranks = await makeRanks(t)
    const opened = await open(t, ranks, (rank) => rank + 1)
    const half = length / 2
    const [next, previous] = [
      (rank: number) => (rank + 1) % ranks.length,
      (rank: number) => (rank + ranks.length - 1) % ranks.length,
    ]
    for (let turn = 0; turn < 3; turn += 1) {
      group(() => {
        for (const { rank, memory, window } of opened) {
          const options = { peer: next(rank.rank), window, offset: 4 * half, count: half, stream: rank.stream }
          rank.communicator.putSignal(memory, options)
        }
      })
      group(() => {
        for (const { rank } of opened) {
          rank.communicator.waitSignal({ peer: previous(rank.rank) }, { stream: rank.stream })
        }
      })
      await settled(ranks)
      for (const { rank, elements } of opened) {
        const expected = new Float32Array(length).fill(rank.rank + 1 + 10 * turn)
        expected.fill(previous(rank.rank) + 1 + 10 * turn, half)
        assertSameBits(await elements.toArray(), expected, `turn ${turn}`)
      }
      // Only after this signal may the next turn overwrite this turn's data.
      group(() => {
        for (const { rank } of opened) rank.communicator.signal({ peer: previous(rank.rank), stream: rank.stream })
      })
      group(() => {
        for (const { rank } of opened) rank.communicator.waitSignal({ peer: next(rank.rank) }, { stream: rank.stream })
      })
      await settled(ranks)
      for (const { rank, elements } of opened) {
        elements.subarray(0, half).copyFromSync(new Float32Array(half).fill(rank.rank + 1 + 10 * (turn + 1)))
      }
    }
    for (const { rank } of opened) assert.equal(rank.communicator.asyncError(), undefined)
  },
}

const deviceApi: ConformanceCase = {
  name: 'teams have the right ranks, and device communicators the same resource offsets on all ranks',
  requires: { devices: 2 },
  async run(t) {
    needNccl(t, 22807, 'device communicators with these resources')
    const ranks = await makeRanks(t)
    for (const { communicator, rank } of ranks) {
      const world = communicator.team('world')
      assert.deepEqual([world.size, world.rank, world.stride], [ranks.length, rank, 1])
      for (const other of ranks.keys()) assert.equal(world.toWorld(other), other)
      const lsa = communicator.team('lsa')
      assert.equal(lsa.toWorld(lsa.rank), rank)
      assert.equal(lsa.size * communicator.team('rail').size, ranks.length)
    }
    const made = await Promise.all(
      ranks.map(({ communicator }) =>
        communicator.createDeviceCommunicator({
          lsaBarrierCount: 4,
          resources: {
            barrier: { kind: 'lsaBarrier', team: communicator.team('lsa'), barriers: 8 },
            exchange: { kind: 'llA2A', blocks: 2, slots: 16 },
          },
        }),
      ),
    )
    for (const one of made) {
      assert.ok(one.bytes().some((byte) => byte !== 0))
      assert.equal(one.resources['barrier']?.fields['nBarriers'], 8)
      assert.deepEqual(one.resources, made[0]?.resources)
      if (ncclVersion().value >= 23003) assert.equal(one.read().nRanks, ranks.length)
    }
    await Promise.all(made.map((one) => one.dispose()))
  },
}

const asynchronous: ConformanceCase = {
  name: 'groups on another thread: the first operations, ten in turn, and one that fails',
  requires: { devices: 2 },
  async run(t) {
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', () => new Float32Array(length).fill(1))
    const both = () => {
      for (const { communicator, stream, rank } of ranks) {
        communicator.allReduce(at(buffers, rank), at(buffers, rank), { op: 'max', stream })
      }
    }
    await groupOffThread(both) // also connects the ranks
    await Promise.all(Array.from({ length: 10 }, () => groupOffThread(both)))
    const mine = new Error('mine')
    await assert.rejects(
      groupOffThread(() => {
        at(ranks, 0).communicator.allReduce(at(buffers, 0), at(buffers, 0), { stream: at(ranks, 0).stream })
        throw mine
      }),
      (error) => error === mine,
    )
    const doubles = zeros(t, ranks, 'f64', length)
    const different = () => {
      const [one, other] = [at(ranks, 0), at(ranks, 1)]
      one.communicator.allReduce(at(buffers, 0), at(buffers, 0), { stream: one.stream })
      other.communicator.allReduce(at(doubles, 1), at(doubles, 1), { stream: other.stream })
    }
    await assert.rejects(groupOffThread(different), /the same operation/)
    assert.throws(() => group(different), /the same operation/)
    await settled(ranks)
    for (const buffer of buffers) assertSameBits(await buffer.toArray(), new Float32Array(length).fill(1), 'max')
  },
}

const simulated: ConformanceCase = {
  name: 'a simulated group starts nothing and leaves the communicators as they were',
  requires: { devices: 2 },
  async run(t) {
    needNccl(t, 22203, 'simulation of groups')
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', () => new Float32Array(length).fill(1))
    const both = () => {
      for (const { communicator, stream, rank } of ranks) {
        communicator.allReduce(at(buffers, rank), at(buffers, rank), { stream })
      }
    }
    const { microseconds } = simulateGroup(both)
    t.note(`estimate: ${microseconds ?? 'none'} µs for an all-reduce of ${4 * length} bytes on ${ranks.length} ranks`)
    await settled(ranks)
    for (const buffer of buffers) assertSameBits(await buffer.toArray(), new Float32Array(length).fill(1), 'before')
    group(both)
    await settled(ranks)
    const sum = new Float32Array(length).fill(ranks.length)
    for (const buffer of buffers) assertSameBits(await buffer.toArray(), sum, 'after')
  },
}

const scaled: ConformanceCase = {
  name: 'pre-multiplied sums, with a number and with a scalar on each device that changes',
  async run(t) {
    const ranks = await makeRanks(t)
    const send = upload(t, ranks, 'f32', (rank) => new Float32Array(length).fill(rank + 1))
    const recv = zeros(t, ranks, 'f32', length)
    const scalars = upload(t, ranks, 'f32', () => Float32Array.of(0.5))
    const sum = (ranks.length * (ranks.length + 1)) / 2
    const run = async (factor: number, ops: readonly ReturnType<Rank['communicator']['createPreMulSum']>[]) => {
      await together(ranks, ({ communicator, stream, rank }) =>
        communicator.allReduce(at(send, rank), at(recv, rank), { op: at(ops, rank), stream }),
      )
      const expected = new Float32Array(length).fill(factor * sum)
      for (const buffer of recv) assertSameBits(await buffer.toArray(), expected, `times ${factor}`)
    }
    const numbers = ranks.map(({ communicator }) => t.own(communicator.createPreMulSum(4, { dtype: 'f32' })))
    await run(4, numbers)
    const memory = ranks.map(({ communicator, rank }) => t.own(communicator.createPreMulSum(at(scalars, rank))))
    await run(0.5, memory)
    for (const scalar of scalars) scalar.copyFromSync(Float32Array.of(8))
    await run(8, memory)
  },
}

export const windowSuite: Suite = {
  name: 'NCCL memory, windows, one-sided operations, asynchronous groups',
  cases: [registered, collective, peers, oneSided, deviceApi, asynchronous, simulated, scaled],
}
