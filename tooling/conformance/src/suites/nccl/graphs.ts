import assert from 'node:assert/strict'
import { Graph } from '@shoal/driver/graph'
import { group } from '@shoal/nccl'
import type { ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { at, makeRanks, settled, together, upload, zeros } from './ranks.js'

const captured: ConformanceCase = {
  name: 'collectives of all ranks, captured in one graph, run at each launch',
  async run(t) {
    const ranks = await makeRanks(t)
    const length = t.random.integer(1, 3000)
    const sums = upload(t, ranks, 'i32', (rank) => new Int32Array(length).fill(rank + 1))
    const gathered = zeros(t, ranks, 'i32', length * ranks.length)
    const [{ stream: first }] = ranks as [(typeof ranks)[0]]
    assert(first !== undefined)
    // The first operation connects the ranks, which cannot be captured.
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.allGather(at(sums, rank), at(gathered, rank), { stream }),
    )
    const graph = t.own(
      Graph.capture(first, () => {
        const start = t.own(first.record())
        for (const { stream } of ranks) if (stream !== first) stream.waitEvent(start)
        group(() => {
          for (const { communicator, stream, rank } of ranks) {
            communicator.allReduce(at(sums, rank), at(sums, rank), { op: 'sum', stream })
          }
        })
        group(() => {
          for (const { communicator, stream, rank } of ranks) {
            communicator.allGather(at(sums, rank), at(gathered, rank), { stream })
          }
        })
        for (const { stream } of ranks) if (stream !== first) first.waitEvent(t.own(stream.record()))
      }),
    )
    const exec = t.own(graph.instantiate())
    const launches = 4
    for (let turn = 0; turn < launches; turn += 1) exec.launch(first)
    await settled(ranks)
    const sum = (ranks.length * (ranks.length + 1)) / 2
    const expected = sum * ranks.length ** (launches - 1)
    for (const buffer of sums) assertSameBits(await buffer.toArray(), new Int32Array(length).fill(expected), 'sum')
    for (const buffer of gathered) {
      assertSameBits(await buffer.toArray(), new Int32Array(length * ranks.length).fill(expected), 'gathered')
    }
    // The communicators still work outside of the graph.
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.broadcast(at(sums, rank), at(sums, rank), { root: 0, stream }),
    )
    exec.launch(first)
    await settled(ranks)
    for (const buffer of sums) {
      assertSameBits(await buffer.toArray(), new Int32Array(length).fill(expected * ranks.length), 'after other calls')
    }
  },
}

const perRank: ConformanceCase = {
  name: 'a graph a rank, launched in turn',
  async run(t) {
    const ranks = await makeRanks(t)
    const values = upload(t, ranks, 'f64', (rank) => Float64Array.of(rank + 0.5))
    await together(ranks, ({ communicator, stream, rank }) =>
      communicator.allReduce(at(values, rank), at(values, rank), { op: 'max', stream }),
    )
    const steps = ranks.map(({ communicator, stream, rank }) => {
      const value = at(values, rank)
      const graph = t.own(Graph.capture(stream, () => communicator.allReduce(value, value, { op: 'sum', stream })))
      return t.own(graph.instantiate())
    })
    for (let turn = 0; turn < 3; turn += 1)
      for (const [index, step] of steps.entries()) step.launch(at(ranks, index).stream)
    await settled(ranks)
    const expected = (ranks.length - 0.5) * ranks.length ** 3
    for (const value of values) assertSameBits(await value.toArray(), Float64Array.of(expected), 'sum of sums')
  },
}

export const ncclGraphSuite: Suite = { name: 'nccl: graphs', cases: [captured, perRank] }
