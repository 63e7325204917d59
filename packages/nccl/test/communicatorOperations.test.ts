import { group } from '@shoal/nccl'
import type { DType } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { everywhere, first, floats, ranks } from './fixtures/allRanks.js'
import { deviceCount, TestMemory } from './fixtures/device.js'

describe('all-to-all, gather, scatter', () => {
  // Returns element k of rank i's part for rank j.
  const element = (i: number, j: number, k: number) => 100 * i + 10 * j + k
  const parts = (i: number, length: number) => ranks.flatMap((j) => Array.from({ length }, (_, k) => element(i, j, k)))

  test.each([1, 3])('all-to-all with %i elements per part', (length) => {
    const send = ranks.map((rank) => floats(rank, parts(rank, length)))
    const recv = ranks.map((rank) => TestMemory.zeros(rank, 'f32', length * deviceCount))
    everywhere((communicator, rank, stream) => {
      communicator.allToAll(send[rank] as TestMemory, recv[rank] as TestMemory, { stream })
    })
    for (const [j, memory] of recv.entries()) {
      expect(memory.floats()).toEqual(ranks.flatMap((i) => Array.from({ length }, (_, k) => element(i, j, k))))
    }
    for (const memory of [...send, ...recv]) memory.dispose()
  })

  test('a count selects the first parts of that size', () => {
    const send = ranks.map((rank) => floats(rank, parts(rank, 2)))
    const recv = ranks.map((rank) => TestMemory.zeros(rank, 'f32', 2 * deviceCount))
    everywhere((communicator, rank, stream) => {
      communicator.allToAll(send[rank] as TestMemory, recv[rank] as TestMemory, { count: 1, stream })
    })
    for (const [j, memory] of recv.entries()) {
      const got = memory.floats()
      expect(got.slice(0, deviceCount)).toEqual(ranks.map((i) => parts(i, 2)[j]))
      expect(got.slice(deviceCount)).toEqual(Array.from({ length: deviceCount }, () => 0))
    }
    for (const memory of [...send, ...recv]) memory.dispose()
  })

  test.each([0, deviceCount - 1])('gather to rank %i, with null on the other ranks', (root) => {
    const send = ranks.map((rank) => floats(rank, [rank, rank + 0.5]))
    const recv = TestMemory.zeros(root, 'f32', 2 * deviceCount)
    everywhere((communicator, rank, stream) => {
      communicator.gather(send[rank] as TestMemory, rank === root ? recv : null, { root, stream })
    })
    expect(recv.floats()).toEqual(ranks.flatMap((rank) => [rank, rank + 0.5]))
    for (const memory of [...send, recv]) memory.dispose()
  })

  test('gather and scatter in place', () => {
    const root = 1
    const whole = floats(root, [0, 11, 0])
    const own = ranks.map((rank) => floats(rank, [10 + rank]))
    everywhere((communicator, rank, stream) => {
      const send = rank === root ? whole.part(4, 4) : (own[rank] as TestMemory)
      communicator.gather(send, rank === root ? whole : null, { root, dtype: 'f32', stream })
    })
    expect(whole.floats()).toEqual([10, 11, 12])
    whole.write(Float32Array.of(7, 8, 9))
    everywhere((communicator, rank, stream) => {
      const recv = rank === root ? whole.part(4, 4) : (own[rank] as TestMemory)
      communicator.scatter(rank === root ? whole : null, recv, { root, dtype: 'f32', stream })
    })
    expect(own.map((memory) => memory.floats()[0])).toEqual([7, 11, 9])
    expect(whole.floats()).toEqual([7, 8, 9])
    for (const memory of [...own, whole]) memory.dispose()
  })

  test('types unknown to NCCL are moved as bytes', () => {
    const dtype: DType = 'complex128'
    const send = ranks.map((rank) => TestMemory.from(rank, Float64Array.of(rank, rank + 0.5), dtype))
    const recv = TestMemory.zeros(0, dtype, deviceCount)
    everywhere((communicator, rank, stream) => {
      communicator.gather(send[rank] as TestMemory, rank === 0 ? recv : null, { root: 0, stream })
    })
    expect(Array.from(recv.read(new Float64Array(2 * deviceCount)))).toEqual(
      ranks.flatMap((rank) => [rank, rank + 0.5]),
    )
    for (const memory of [...send, recv]) memory.dispose()
  })

  test('refuse buffers that do not fit the ranks, overlap or are missing', () => {
    const [communicator, stream] = first()
    const three = TestMemory.zeros(0, 'f32', 3)
    const four = TestMemory.zeros(0, 'f32', 4)
    const other = TestMemory.zeros(0, 'f32', 4)
    expect(() => communicator.allToAll(four, other, { stream })).toThrow('cannot be divided equally')
    expect(() => communicator.allToAll(three, four, { stream })).toThrow('pass a count')
    expect(() => communicator.allToAll(three, other, { count: 2, stream })).toThrow(RangeError)
    expect(() => communicator.allToAll(three, three, { stream })).toThrow('overlap')
    expect(() => communicator.gather(four, three, { root: 0, stream })).toThrow('× 3 ranks')
    expect(() => communicator.gather(four, null, { root: 0, stream })).toThrow(TypeError)
    // A part of another rank: outside the short buffer, inside the long one.
    for (const part of [three.part(4, 4), three.part(8, 4)]) {
      const options = { dtype: 'f32', stream } as const
      expect(() => communicator.gather(part, three, { root: 0, ...options })).toThrow('overlap')
      expect(() => communicator.allGather(part, three, options)).toThrow('overlap')
      expect(() => communicator.reduceScatter(three, part, options)).toThrow('overlap')
    }
    expect(() => communicator.gather(four, null, { root: 3, stream })).toThrow(RangeError)
    expect(() => communicator.scatter(null, four, { root: 0, stream })).toThrow(TypeError)
    expect(() => communicator.scatter(four, three.part(0, 4), { root: 0, stream })).toThrow(RangeError)
    expect(() => communicator.scatter(three, three.part(4, 4), { root: 0, dtype: 'f32', stream })).toThrow('overlap')
    for (const memory of [three, four, other]) memory.dispose()
  })
})

describe('send and receive', () => {
  test('pass data around a ring', () => {
    const send = ranks.map((rank) => floats(rank, [rank, 1]))
    const recv = ranks.map((rank) => TestMemory.zeros(rank, 'f32', 2))
    everywhere((communicator, rank, stream) => {
      communicator.send(send[rank] as TestMemory, { peer: (rank + 1) % deviceCount, stream })
      communicator.recv(recv[rank] as TestMemory, { peer: (rank + deviceCount - 1) % deviceCount, stream })
    })
    for (const [rank, memory] of recv.entries()) {
      expect(memory.floats()).toEqual([(rank + deviceCount - 1) % deviceCount, 1])
    }
    for (const memory of [...send, ...recv]) memory.dispose()
  })

  test('pass a part of a buffer from a rank to itself, in a group', () => {
    const [communicator, stream] = first()
    const send = floats(0, [1, 2, 3])
    const recv = TestMemory.zeros(0, 'f32', 3)
    group(() => {
      communicator.send(send, { peer: 0, count: 2, stream })
      communicator.recv(recv, { peer: 0, count: 2, stream })
    })
    stream.wait()
    expect(recv.floats()).toEqual([1, 2, 0])
    for (const memory of [send, recv]) memory.dispose()
  })

  test('refuse a wrong peer, too large a count, and read-only memory as the target', () => {
    const [communicator, stream] = first()
    const memory = floats(0, [1])
    for (const peer of [-1, 3, Number.POSITIVE_INFINITY]) {
      expect(() => communicator.send(memory, { peer, stream })).toThrow(RangeError)
    }
    for (const peer of [0.5, Number.NaN]) expect(() => communicator.send(memory, { peer, stream })).toThrow(TypeError)
    expect(() => communicator.recv(memory, { peer: '1' as never, stream })).toThrow(TypeError)
    expect(() => communicator.send(memory, { peer: 1, count: 2, stream })).toThrow(RangeError)
    memory.override = { readOnly: true }
    expect(() => communicator.recv(memory, { peer: 1, stream })).toThrow('read-only')
    memory.dispose()
  })
})
