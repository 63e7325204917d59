import assert from 'node:assert/strict'
import { definedLibraries } from '@shoal/ffi'
import { slots64 } from '@shoal/ffi/calls'
import { group, prepareGroup } from '@shoal/nccl'
import { StatusError } from '@shoal/types'
import type { ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { at, makeRanks, type Rank, settled, together, upload } from './ranks.js'

const length = 1001

async function assertStillWorks(ranks: readonly Rank[], buffers: Parameters<Rank['communicator']['allReduce']>[0][]) {
  await together(ranks, ({ communicator, stream, rank }) =>
    communicator.allReduce(at(buffers, rank), at(buffers, rank), { op: 'sum', stream }),
  )
}

const nested: ConformanceCase = {
  name: 'nested groups start their work when the outermost one ends',
  async run(t) {
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', (rank) => new Float32Array(length).fill(rank + 1))
    const answer = group(() => {
      for (const { communicator, stream, rank } of ranks) {
        group(() => communicator.allReduce(at(buffers, rank), at(buffers, rank), { op: 'sum', stream }))
      }
      return 'the value of fn'
    })
    assert.equal(answer, 'the value of fn')
    await settled(ranks)
    const sum = (ranks.length * (ranks.length + 1)) / 2
    for (const buffer of buffers) assertSameBits(await buffer.toArray(), new Float32Array(length).fill(sum), 'sum')
  },
}

const empty: ConformanceCase = {
  name: 'a group without calls is none',
  run() {
    assert.equal(
      group(() => 7),
      7,
    )
    assert.equal(
      group(() => group(() => 8)),
      8,
    )
  },
}

const failing: ConformanceCase = {
  name: 'a group whose function throws starts nothing, and the communicators go on',
  requires: { devices: 2 },
  async run(t) {
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', () => new Float32Array(length).fill(1))
    await assertStillWorks(ranks, buffers) // also connects the ranks
    const before = new Float32Array(length).fill(ranks.length)
    for (const take of [1, ranks.length]) {
      const mine = new Error('mine')
      assert.throws(
        () =>
          group(() => {
            for (const { communicator, stream, rank } of ranks.slice(0, take)) {
              communicator.allReduce(at(buffers, rank), at(buffers, rank), { op: 'sum', stream })
            }
            throw mine
          }),
        (error) => error === mine && !('suppressed' in mine),
      )
      // If half of the group had started, these waits would never end.
      await settled(ranks)
      for (const buffer of buffers) assertSameBits(await buffer.toArray(), before, `after ${take} calls`)
    }
    await assertStillWorks(ranks, buffers)
    const after = new Float32Array(length).fill(ranks.length ** 2)
    for (const buffer of buffers) assertSameBits(await buffer.toArray(), after, 'after the next group')
    for (const { communicator } of ranks) assert.equal(communicator.asyncError(), undefined)
  },
}

const failingInside: ConformanceCase = {
  name: 'a nested group that throws fails the outer one, also when it catches',
  requires: { devices: 2 },
  async run(t) {
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', () => new Float32Array(length).fill(1))
    const mine = new TypeError('mine')
    assert.throws(
      () =>
        group(() => {
          for (const { communicator, stream, rank } of ranks) {
            communicator.allReduce(at(buffers, rank), at(buffers, rank), { op: 'sum', stream })
          }
          try {
            group(() => {
              throw mine
            })
          } catch {
            // the outer group still knows of the failure
          }
        }),
      (error) => error === mine,
    )
    await settled(ranks)
    for (const buffer of buffers) assertSameBits(await buffer.toArray(), new Float32Array(length).fill(1), 'untouched')
    await assertStillWorks(ranks, buffers)
  },
}

const wrongArgument: ConformanceCase = {
  name: 'a wrong argument within a group starts nothing on any rank',
  requires: { devices: 2 },
  async run(t) {
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', () => new Float32Array(length).fill(1))
    await assertStillWorks(ranks, buffers)
    assert.throws(
      () =>
        group(() => {
          for (const { communicator, stream, rank } of ranks) {
            const count = rank === ranks.length - 1 ? length + 1 : length
            communicator.allReduce(at(buffers, rank), at(buffers, rank), { op: 'sum', stream, count })
          }
        }),
      RangeError,
    )
    await settled(ranks)
    await assertStillWorks(ranks, buffers)
    const expected = new Float32Array(length).fill(ranks.length ** 2)
    for (const buffer of buffers) assertSameBits(await buffer.toArray(), expected, 'after the next group')
  },
}

const asynchronous: ConformanceCase = {
  name: 'an asynchronous function is refused, and its rejection ends no process',
  async run(t) {
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', () => new Float32Array(length).fill(1))
    assert.throws(
      () =>
        group(async () => {
          await undefined
          throw new Error('too late')
        }),
      TypeError,
    )
    await new Promise((resolve) => setImmediate(resolve))
    await assertStillWorks(ranks, buffers)
  },
}

/** Calls `ncclAllReduce` on one f32 in place, with any number as reduction. */
function rawAllReduce(address: bigint, communicator: bigint, stream: bigint, { op }: { readonly op: number }): number {
  const library = definedLibraries().find(({ id }) => id === 'nccl')
  if (library === undefined) throw new Error('no package has defined NCCL')
  const call = library.bind('ncclAllReduce', 2000, 7)
  const float32 = 7n
  for (const [slot, word] of [address, address, 1n, float32, BigInt(op), communicator, stream].entries())
    slots64[slot] = word
  return call()
}

const refusedByNccl: ConformanceCase = {
  name: 'a call that NCCL refuses fails the group with its code',
  async run(t) {
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', () => new Float32Array(length).fill(1))
    const { communicator, stream } = at(ranks, 0)
    const address = at(buffers, 0).address
    const thrown = new Error('mine')
    for (const throws of [false, true]) {
      assert.throws(
        () =>
          group(() => {
            // The program ignores the status of this call.
            const status = rawAllReduce(address, communicator.handle, stream.handle, { op: 77 })
            assert.equal(status, 4)
            if (throws) throw thrown
          }),
        (error) => {
          const second = throws ? (error as { suppressed?: unknown }).suppressed : error
          assert.equal(throws ? error : thrown, thrown)
          assert.ok(second instanceof StatusError)
          assert.equal(second.code, 'ncclInvalidArgument')
          assert.equal(second.api, 'ncclGroupEnd')
          assert.ok(second.description.length > 0)
          return true
        },
      )
    }
    await assertStillWorks(ranks, buffers)
  },
}

const prepared: ConformanceCase = {
  name: 'a prepared group does the same each time, also inside another one',
  async run(t) {
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', (rank) => new Float32Array(length).fill(rank + 1))
    const step = prepareGroup(
      ranks.map(({ communicator, stream, rank }) =>
        communicator.prepareAllReduce(at(buffers, rank), at(buffers, rank), { op: 'sum', stream }),
      ),
    )
    let expected = (ranks.length * (ranks.length + 1)) / 2
    for (let round = 0; round < 4; round += 1) {
      if (round === 2) group(() => step.launch())
      else step.launch()
      await settled(ranks)
      for (const buffer of buffers)
        assertSameBits(await buffer.toArray(), new Float32Array(length).fill(expected), 'sum')
      expected *= ranks.length
    }
  },
}

export const groupSuite: Suite = {
  name: 'nccl groups',
  cases: [nested, empty, failing, failingInside, wrongArgument, asynchronous, refusedByNccl, prepared],
}
