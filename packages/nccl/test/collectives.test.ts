import { withContext } from '@shoal/cuda-sys'
import { cuMemsetD32Async, cuStreamWaitValue32 } from '@shoal/cuda-sys/driver'
import { type Communicator, group, type ReduceOp } from '@shoal/nccl'
import {
  DisposedError,
  type DType,
  decodeArray,
  dtypeInfo,
  encodeArray,
  memoryProtocol,
  StatusError,
  streamProtocol,
} from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { communicators, everywhere, ranks, streams } from './fixtures/allRanks.js'
import { contextOf, deviceCount, errorOf, TestMemory, TestStream } from './fixtures/device.js'

const values = (rank: number, length = 1001) => Float32Array.from({ length }, (_, i) => ((i * 7 + rank * 13) % 29) - 14)

describe('all-reduce', () => {
  const combine: Record<ReduceOp, (all: readonly number[]) => number> = {
    sum: (all) => all.reduce((a, b) => a + b),
    prod: (all) => all.reduce((a, b) => a * b),
    max: (all) => Math.max(...all),
    min: (all) => Math.min(...all),
    avg: (all) => all.reduce((a, b) => a + b) / all.length,
  }

  test.each(Object.keys(combine) as ReduceOp[])('%s of f32, odd count', (op) => {
    const send = ranks.map((rank) => TestMemory.from(rank, values(rank)))
    const recv = ranks.map((rank) => TestMemory.zeros(rank, 'f32', 1001))
    everywhere((communicator, rank, stream) => {
      communicator.allReduce(send[rank] as TestMemory, recv[rank] as TestMemory, { op, stream })
    })
    const inputs = ranks.map((rank) => values(rank))
    for (const memory of recv) {
      const got = memory.floats()
      expect(got).toHaveLength(1001)
      for (const [i, value] of got.entries()) {
        expect(value).toBeCloseTo(combine[op](inputs.map((input) => input[i] as number)), 3)
      }
    }
    for (const memory of [...send, ...recv]) memory.dispose()
  })

  test.each(['i8', 'u8', 'i32', 'u32', 'f16', 'bf16', 'f32', 'f64'] as DType[])('sum of %s', (dtype) => {
    const input = [1, 2, 3, 5, 8]
    const send = ranks.map((rank) => TestMemory.from(rank, encodeArray(dtype, input) as Float32Array, dtype))
    everywhere((communicator, rank, stream) => {
      communicator.allReduce(send[rank] as TestMemory, send[rank] as TestMemory, { stream })
    })
    for (const memory of send) {
      const bits = memory.read(new (dtypeInfo(dtype).typedArray)(input.length) as Float32Array)
      expect(Array.from(decodeArray(dtype, bits as never) as ArrayLike<number>)).toEqual(
        input.map((value) => value * deviceCount),
      )
      memory.dispose()
    }
  })

  test('a count selects the first elements and keeps the rest', () => {
    const memory = ranks.map((rank) => TestMemory.from(rank, new Float32Array([1, 2, 3, 4])))
    everywhere((communicator, rank, stream) => {
      communicator.allReduce(memory[rank] as TestMemory, memory[rank] as TestMemory, { count: 2, stream })
    })
    for (const one of memory) {
      expect(one.floats()).toEqual([deviceCount, 2 * deviceCount, 3, 4])
      one.dispose()
    }
  })

  test('memory without a dtype uses the dtype from the options', () => {
    const memory = ranks.map((rank) => {
      const bare = new TestMemory(rank, 8)
      return bare
    })
    const typed = ranks.map((rank) => TestMemory.from(rank, new Float32Array([rank, 1])))
    everywhere((communicator, rank, stream) => {
      communicator.allReduce(typed[rank] as TestMemory, memory[rank] as TestMemory, { dtype: 'f32', stream })
    })
    for (const one of memory) expect(one.floats()).toEqual([0 + 1 + 2, deviceCount])
    for (const one of [...memory, ...typed]) one.dispose()
  })

  test('zero elements are accepted', () => {
    const memory = ranks.map((rank) => TestMemory.from(rank, new Float32Array([4])))
    everywhere((communicator, rank, stream) => {
      communicator.allReduce(memory[rank] as TestMemory, memory[rank] as TestMemory, { count: 0, stream })
    })
    for (const one of memory) expect(one.floats()).toEqual([4])
    for (const one of memory) one.dispose()
  })
})

describe('other collectives', () => {
  test('broadcast works out of place, and with null on ranks that only receive', () => {
    const send = TestMemory.from(1, new Float32Array([3, 1, 4]))
    const recv = ranks.map((rank) => TestMemory.zeros(rank, 'f32', 3))
    everywhere((communicator, rank, stream) => {
      communicator.broadcast(rank === 1 ? send : null, recv[rank] as TestMemory, { root: 1, stream })
    })
    for (const one of recv) expect(one.floats()).toEqual([3, 1, 4])
    everywhere((communicator, rank, stream) => {
      const memory = rank === 0 ? TestMemory.from(0, new Float32Array([9, 9, 9])) : (recv[rank] as TestMemory)
      communicator.broadcast(memory, memory, { root: 0, stream })
    })
    for (const one of recv.slice(1)) expect(one.floats()).toEqual([9, 9, 9])
    for (const one of [send, ...recv]) one.dispose()
  })

  test('broadcast of a type unknown to NCCL moves the bytes', () => {
    const memory = ranks.map((rank) => TestMemory.from(rank, Uint16Array.of(rank + 1, 65535 - rank), 'u16'))
    everywhere((communicator, rank, stream) => {
      communicator.broadcast(memory[rank] as TestMemory, memory[rank] as TestMemory, { root: 2, stream })
    })
    for (const one of memory) expect(Array.from(one.read(new Uint16Array(2)))).toEqual([3, 65533])
    for (const one of memory) one.dispose()
  })

  test('reduce stores the result on the root only', () => {
    const send = ranks.map((rank) => TestMemory.from(rank, new Float32Array([rank + 1, 10])))
    const recv = TestMemory.zeros(2, 'f32', 2)
    everywhere((communicator, rank, stream) => {
      communicator.reduce(send[rank] as TestMemory, rank === 2 ? recv : null, { root: 2, op: 'sum', stream })
    })
    expect(recv.floats()).toEqual([6, 30])
    for (const [rank, one] of send.entries()) expect(one.floats()).toEqual([rank + 1, 10])
    for (const one of [...send, recv]) one.dispose()
  })

  test('all-gather works out of place and in place', () => {
    const send = ranks.map((rank) => TestMemory.from(rank, new Float32Array([rank, rank + 0.5])))
    const recv = ranks.map((rank) => TestMemory.zeros(rank, 'f32', 2 * deviceCount))
    everywhere((communicator, rank, stream) => {
      communicator.allGather(send[rank] as TestMemory, recv[rank] as TestMemory, { stream })
    })
    for (const one of recv) expect(one.floats()).toEqual([0, 0.5, 1, 1.5, 2, 2.5])
    const whole = ranks.map((rank) => TestMemory.from(rank, new Float32Array(deviceCount).fill(rank + 5)))
    everywhere((communicator, rank, stream) => {
      const memory = whole[rank] as TestMemory
      communicator.allGather(memory.part(4 * rank, 4), memory, { stream })
    })
    for (const one of whole) expect(one.floats()).toEqual([5, 6, 7])
    for (const one of [...send, ...recv, ...whole]) one.dispose()
  })

  test('reduce-scatter returns to each rank its part of the sum', () => {
    const send = ranks.map((rank) =>
      TestMemory.from(
        rank,
        Float32Array.from({ length: 6 }, (_, i) => i + rank),
      ),
    )
    const recv = ranks.map((rank) => TestMemory.zeros(rank, 'f32', 2))
    everywhere((communicator, rank, stream) => {
      communicator.reduceScatter(send[rank] as TestMemory, recv[rank] as TestMemory, { op: 'sum', stream })
    })
    for (const [rank, one] of recv.entries()) expect(one.floats()).toEqual([6 * rank + 3, 6 * rank + 6])
    for (const one of [...send, ...recv]) one.dispose()
  })
})

describe('a repeated collective with unchanged operands', () => {
  const frozen = (memory: TestMemory) => {
    const range = Object.freeze(memory[memoryProtocol])
    return {
      get [memoryProtocol]() {
        void memory[memoryProtocol] // throws after its disposal
        return range
      },
    }
  }
  const frozenStream = (stream: TestStream) => {
    const handle = Object.freeze(stream[streamProtocol])
    return {
      get [streamProtocol]() {
        void stream[streamProtocol]
        return handle
      },
    }
  }

  test('all-reduce has correct results each time, and detects each change', () => {
    const memories = ranks.map((rank) => TestMemory.from(rank, new Float32Array([1, 2, 3])))
    const results = ranks.map((rank) => TestMemory.zeros(rank, 'f32', 3))
    const sends = memories.map(frozen)
    const receives = results.map(frozen)
    const queues = streams.map(frozenStream)
    const reduceAll = (options: { op?: ReduceOp; count?: number }): number[] => {
      group(() => {
        for (const [rank, communicator] of communicators.entries()) {
          const stream = queues[rank] as ReturnType<typeof frozenStream>
          communicator.allReduce(sends[rank] as never, receives[rank] as never, { ...options, stream })
        }
      })
      for (const stream of streams) stream.wait()
      const [first, ...others] = results.map((result) => result.floats())
      for (const other of others) expect(other).toEqual(first)
      return first as number[]
    }
    const n = deviceCount
    expect(reduceAll({})).toEqual([n, 2 * n, 3 * n])
    expect(reduceAll({})).toEqual([n, 2 * n, 3 * n])
    expect(reduceAll({ op: 'max' })).toEqual([1, 2, 3])
    expect(reduceAll({ op: 'max' })).toEqual([1, 2, 3])
    for (const memory of memories) memory.write(new Float32Array([5, 6, 7]))
    expect(reduceAll({ op: 'max', count: 1 })).toEqual([5, 2, 3])
    expect(reduceAll({ op: 'max' })).toEqual([5, 6, 7])
    expect(errorOf(() => reduceAll({ op: 'max', count: 4 }))).toBeInstanceOf(RangeError)
    expect(errorOf(() => reduceAll({ op: 'median' as ReduceOp }))).toBeInstanceOf(TypeError)
    expect(reduceAll({})).toEqual([5 * n, 6 * n, 7 * n])
    memories[0]?.dispose()
    expect(errorOf(() => reduceAll({}))).toBeInstanceOf(DisposedError)
    for (const memory of [...memories.slice(1), ...results]) memory.dispose()
  })

  const n = deviceCount
  test.each([
    // Rank r has parts 10 r, 10 r + 1, … for the ranks. Gathers send the first part.
    ['allGather', 1, n, (_rank: number, part: number) => 10 * part],
    ['allToAll', n, n, (rank: number, part: number) => 10 * part + rank],
    ['reduceScatter', n, 1, (rank: number) => ranks.reduce((sum, other) => sum + 10 * other + rank, 0)],
  ] as const)('%s has correct results each time, and detects each change', (name, sent, received, expected) => {
    const parts = (rank: number, more: number) => Float32Array.from({ length: sent }, (_, i) => 10 * rank + i + more)
    const memories = ranks.map((rank) => TestMemory.from(rank, parts(rank, 0)))
    const results = ranks.map((rank) => TestMemory.zeros(rank, 'f32', received))
    const sends = memories.map(frozen)
    const receives = results.map(frozen)
    const queues = streams.map(frozenStream)
    const all = (options: { count?: number }, one = name, sources = sends): number[][] => {
      group(() => {
        for (const [rank, communicator] of communicators.entries()) {
          const stream = queues[rank] as ReturnType<typeof frozenStream>
          communicator[one](sources[rank] as never, receives[rank] as never, { ...options, stream })
        }
      })
      for (const stream of streams) stream.wait()
      return results.map((result) => [...result.floats()])
    }
    const right = (more: number) =>
      ranks.map((rank) => Array.from({ length: received }, (_, part) => expected(rank, part) + more))
    expect(all({})).toEqual(right(0))
    expect(all({})).toEqual(right(0))
    for (const [rank, memory] of memories.entries()) memory.write(parts(rank, 1))
    const grown = right(name === 'reduceScatter' ? n : 1)
    expect(all({ count: 0 })).toEqual(right(0))
    expect(all({})).toEqual(grown)
    expect(errorOf(() => all({ count: 2 }))).toBeInstanceOf(RangeError)
    const others = ranks.map((rank) => TestMemory.from(rank, parts(rank, 0)))
    expect(all({}, name, others.map(frozen))).toEqual(right(0))
    expect(all({})).toEqual(grown)
    memories[0]?.dispose()
    expect(errorOf(() => all({}))).toBeInstanceOf(DisposedError)
    for (const memory of [...memories.slice(1), ...results, ...others]) memory.dispose()
  })
})

test('a collective waits for the producer stream of its memory at each call', () => {
  const producer = new TestStream(0)
  const send = ranks.map((rank) => TestMemory.zeros(rank, 'f32', 64))
  const recv = ranks.map((rank) => TestMemory.zeros(rank, 'f32', 64))
  const first = send[0] as TestMemory
  first.override = { version: 1, stream: producer.handle }
  for (const value of [1, 2]) {
    const gate = TestMemory.zeros(0, 'u32', 1)
    const bits = new Uint32Array(Float32Array.of(value).buffer)[0] as number
    withContext(contextOf(0), () => {
      expect(cuStreamWaitValue32(producer.handle, gate.address, 1, 0)).toBe(0)
      expect(cuMemsetD32Async(first.address, bits, 64, producer.handle)).toBe(0)
    })
    group(() => {
      for (const [rank, communicator] of communicators.entries()) {
        const stream = streams[rank] as TestStream
        communicator.allReduce(send[rank] as TestMemory, recv[rank] as TestMemory, { stream })
      }
    })
    expect(streams[0]?.isIdle()).toBe(false)
    gate.write(Int32Array.of(1))
    for (const stream of streams) stream.wait()
    for (const memory of recv) expect(memory.floats()).toEqual(new Array(64).fill(value))
    gate.dispose()
  }
})

test('an error of NCCL has its code, message and version', () => {
  // A raw handle is not checked. Only NCCL sees that it is the legacy stream of a device with a capture.
  const memory = TestMemory.zeros(0, 'f32', 1)
  const lying = { [memoryProtocol]: { ...memory[memoryProtocol], address: 0n } }
  const error = errorOf(() =>
    (communicators[0] as Communicator).allReduce(lying, lying, { stream: streams[0] as TestStream }),
  )
  expect(error).toBeInstanceOf(StatusError)
  expect(error).toMatchObject({ library: 'NCCL', api: 'ncclAllReduce', code: 'ncclInvalidArgument', status: 4 })
  expect((error as StatusError).description).not.toBe('')
  expect((error as StatusError).libraryVersion).toMatch(/^2\./)
  memory.dispose()
})
