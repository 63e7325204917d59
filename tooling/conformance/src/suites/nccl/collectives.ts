import assert from 'node:assert/strict'
import { group, type ReduceOp } from '@shoal/nccl'
import { type DType, decodeArray, dtypeInfo, encodeArray, type HostValueOf, type TypedArrayOf } from '@shoal/types'
import type { ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { at, makeRanks, settled, together, upload, zeros } from './ranks.js'

const lengths = [1, 3, 255, 4097, 2 ** 20 + 3]

const combine: { readonly [O in ReduceOp]: (a: number, b: number) => number } = {
  sum: (a, b) => a + b,
  prod: (a, b) => a * b,
  max: Math.max,
  min: Math.min,
  avg: (a, b) => a + b,
}

const dtypes: readonly DType[] = ['i8', 'u8', 'i32', 'u32', 'i64', 'u64', 'f16', 'bf16', 'f32', 'f64']

/** Returns small whole numbers. Every dtype holds them exactly, and also the result of any op over a few ranks. */
function exact(dtype: DType, op: ReduceOp, length: number, rank: number, ranks: number): number[] {
  return Array.from({ length }, (_, i) => {
    const value = (i * 5 + rank * 3) % 7
    // The product is at most 2^6, which even i8 holds.
    if (op === 'prod') return rank < 6 ? 1 + (value % 2) : 1
    // The mean is a whole number, because the ranks differ by multiples of the number of ranks.
    if (op === 'avg') return (i % 5) + ranks * (rank % 2)
    return dtypeInfo(dtype).kind === 'uint' ? value : value - 3
  })
}

function dtypeCase(dtype: DType): ConformanceCase {
  return {
    name: `all-reduce of ${dtype}, every op, is exact on small whole numbers`,
    async run(t) {
      const ranks = await makeRanks(t)
      const length = 1023
      for (const op of Object.keys(combine) as ReduceOp[]) {
        const inputs = ranks.map(({ rank }) => exact(dtype, op, length, rank, ranks.length))
        const buffers = upload(t, ranks, dtype, (rank) => encode(dtype, at(inputs, rank)))
        await together(ranks, ({ communicator, stream, rank }) =>
          communicator.allReduce(at(buffers, rank), at(buffers, rank), { op, stream }),
        )
        const expected = Array.from({ length }, (_, i) => {
          const all = inputs.map((input) => at(input, i))
          const value = all.reduce((a, b) => combine[op](a, b))
          return op === 'avg' ? value / ranks.length : value
        })
        for (const buffer of buffers) {
          assertSameBits(await buffer.toArray(), encode(dtype, expected), `${op} of ${dtype}`)
        }
      }
    },
  }
}

function encode<D extends DType>(dtype: D, values: readonly number[]): TypedArrayOf<D> {
  const hostValues = dtype === 'i64' || dtype === 'u64' ? values.map(BigInt) : values
  const array = encodeArray(dtype, hostValues as readonly HostValueOf<D>[])
  const held = Array.from(decodeArray(dtype, array) as ArrayLike<number | bigint>, Number)
  assert.deepEqual(held, values, `${dtype} does not hold the test's values`)
  return array
}

const randomSum: ConformanceCase = {
  name: 'all-reduce of random f32 of odd lengths, against sums in double precision',
  async run(t) {
    const ranks = await makeRanks(t)
    for (const length of lengths) {
      const inputs = ranks.map(() => t.random.floats(length))
      const send = upload(t, ranks, 'f32', (rank) => at(inputs, rank))
      const recv = zeros(t, ranks, 'f32', length)
      await together(ranks, ({ communicator, stream, rank }) =>
        communicator.allReduce(at(send, rank), at(recv, rank), { op: 'sum', stream }),
      )
      const results = await Promise.all(recv.map((buffer) => buffer.toArray()))
      for (let i = 0; i < length; i += 1) {
        let sum = 0
        let magnitude = 0
        for (const input of inputs) {
          sum += at2(input, i)
          magnitude += Math.abs(at2(input, i))
        }
        // Each addition rounds once to 24 bits. Each partial sum is at most the sum of magnitudes.
        const tolerance = (ranks.length - 1) * 2 ** -24 * magnitude * 1.001
        for (const result of results) {
          const error = Math.abs(at2(result, i) - sum)
          if (!(error <= tolerance))
            assert.fail(`element ${i} of ${length} is ${at2(result, i)}, should be ${sum} ± ${tolerance}`)
        }
      }
      for (const result of results) assertSameBits(result, at(results, 0), 'the result on another rank')
      for (const [rank, buffer] of send.entries()) assertSameBits(await buffer.toArray(), at(inputs, rank), 'send')
    }
  },
}

function at2(array: Float32Array, index: number): number {
  return array[index] as number
}

const partOfBuffer: ConformanceCase = {
  name: 'all-reduce of a part of a buffer leaves the rest as it was',
  async run(t) {
    const ranks = await makeRanks(t)
    const buffers = upload(t, ranks, 'f32', () => new Float32Array(1000).fill(1))
    await together(ranks, ({ communicator, stream, rank }) => {
      const part = at(buffers, rank).slice(101, 900)
      communicator.allReduce(part, part, { op: 'sum', stream, count: 700 })
    })
    const expected = new Float32Array(1000).fill(1).fill(ranks.length, 101, 801)
    for (const buffer of buffers) assertSameBits(await buffer.toArray(), expected, 'the buffer')
  },
}

const streamOrder: ConformanceCase = {
  name: 'collectives keep the order of their stream with other work',
  async run(t) {
    const ranks = await makeRanks(t)
    const length = 2 ** 18 + 1
    const buffers = zeros(t, ranks, 'f32', length)
    const rounds = 20
    for (let round = 0; round < rounds; round += 1) {
      for (const { stream, rank } of ranks) at(buffers, rank).fill(rank + round, { stream })
      // Nothing waits between the fill and the reduction, or before the next fill.
      group(() => {
        for (const { communicator, stream, rank } of ranks) {
          communicator.allReduce(at(buffers, rank), at(buffers, rank), { op: 'sum', stream })
        }
      })
    }
    await settled(ranks)
    const last = rounds - 1
    const sum = ranks.reduce((total, { rank }) => total + rank + last, 0)
    for (const { stream, rank } of ranks) {
      const result = await at(buffers, rank).toArray({ stream })
      assertSameBits(result, new Float32Array(length).fill(sum), `rank ${rank}`)
    }
  },
}

const broadcast: ConformanceCase = {
  name: 'broadcast from every root, in place and not',
  async run(t) {
    const ranks = await makeRanks(t)
    const length = 4097
    for (const { rank: root } of ranks) {
      const data = t.random.array('u16', length)
      const recv = zeros(t, ranks, 'u16', length)
      const send = upload(t, [at(ranks, root)], 'u16', () => data)
      await together(ranks, ({ communicator, stream, rank }) =>
        communicator.broadcast(rank === root ? at(send, 0) : null, at(recv, rank), { root, stream }),
      )
      for (const buffer of recv) assertSameBits(await buffer.toArray(), data, `broadcast from ${root}`)
      const own = upload(t, ranks, 'f32', (rank) => new Float32Array(length).fill(rank + 1))
      await together(ranks, ({ communicator, stream, rank }) =>
        communicator.broadcast(at(own, rank), at(own, rank), { root, stream }),
      )
      for (const buffer of own) {
        assertSameBits(await buffer.toArray(), new Float32Array(length).fill(root + 1), `in place from ${root}`)
      }
    }
  },
}

const reduceToRoot: ConformanceCase = {
  name: 'reduce leaves the result on every root in turn, and the inputs alone',
  async run(t) {
    const ranks = await makeRanks(t)
    const send = upload(t, ranks, 'i32', (rank) => Int32Array.from({ length: 999 }, (_, i) => i * (rank + 1)))
    for (const { rank: root } of ranks) {
      const recv = zeros(t, [at(ranks, root)], 'i32', 999)
      await together(ranks, ({ communicator, stream, rank }) =>
        communicator.reduce(at(send, rank), rank === root ? at(recv, 0) : null, { root, op: 'sum', stream }),
      )
      const factor = ranks.reduce((sum, { rank }) => sum + rank + 1, 0)
      assertSameBits(
        await at(recv, 0).toArray(),
        Int32Array.from({ length: 999 }, (_, i) => i * factor),
        'result',
      )
    }
    for (const [rank, buffer] of send.entries()) {
      assertSameBits(
        await buffer.toArray(),
        Int32Array.from({ length: 999 }, (_, i) => i * (rank + 1)),
        'input',
      )
    }
  },
}

const gatherAndScatter: ConformanceCase = {
  name: 'all-gather and reduce-scatter, in place and not',
  async run(t) {
    const ranks = await makeRanks(t)
    const n = ranks.length
    const length = 777
    const send = upload(t, ranks, 'f64', (rank) => new Float64Array(length).fill(rank + 0.5))
    const gathered = zeros(t, ranks, 'f64', length * n)
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.allGather(at(send, rank), at(gathered, rank), { stream }),
    )
    const all = Float64Array.from({ length: length * n }, (_, i) => Math.floor(i / length) + 0.5)
    for (const buffer of gathered) assertSameBits(await buffer.toArray(), all, 'all-gather')

    const parts = zeros(t, ranks, 'f64', length)
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.reduceScatter(at(gathered, rank), at(parts, rank), { op: 'sum', stream }),
    )
    for (const [rank, buffer] of parts.entries()) {
      assertSameBits(await buffer.toArray(), new Float64Array(length).fill((rank + 0.5) * n), 'reduce-scatter')
    }

    const part = (rank: number) => at(gathered, rank).slice(rank * length, (rank + 1) * length)
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.reduceScatter(at(gathered, rank), part(rank), { op: 'sum', stream }),
    )
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.allGather(part(rank), at(gathered, rank), { stream }),
    )
    for (const buffer of gathered) {
      assertSameBits(
        await buffer.toArray(),
        all.map((value) => value * n),
        'in place, one after the other',
      )
    }
  },
}

export const collectiveSuite: Suite = {
  name: 'nccl collectives',
  cases: [randomSum, ...dtypes.map(dtypeCase), partOfBuffer, streamOrder, broadcast, reduceToRoot, gatherAndScatter],
}
