import { inspect } from 'node:util'
import { Communicator } from '@shoal/nccl'
import {
  ncclDataType_t,
  type ncclRedOp_t,
  ncclRedOpCreatePreMulSum,
  ncclRedOpDestroy,
  ncclScalarResidence_t,
} from '@shoal/nccl-sys'
import { DisposedError, type DType, dtypeInfo, encodeArray } from '@shoal/types'
import { expect, test } from 'vitest'
import { communicators, everywhere, first, floats, ranks } from './fixtures/allRanks.js'
import { deviceCount, errorOf, TestMemory } from './fixtures/device.js'
import { secondCopy } from './fixtures/secondCopy.js'

test.each(['f32', 'f64', 'i32', 'u8', 'f16', 'bf16'] as DType[])(
  'a pre-multiplied sum works with a number, %s',
  (dtype) => {
    const memory = ranks.map((rank) => TestMemory.from(rank, encodeArray(dtype, [1, 2]) as Float32Array, dtype))
    const ops = communicators.map((communicator) => communicator.createPreMulSum(3, { dtype }))
    everywhere((communicator, rank, stream) => {
      const [one, op] = [memory[rank] as TestMemory, ops[rank] as (typeof ops)[number]]
      communicator.allReduce(one, one, { op, stream })
    })
    const expected = encodeArray(dtype, [3 * deviceCount, 6 * deviceCount])
    for (const one of memory) {
      expect(one.read(new (dtypeInfo(dtype).typedArray)(2) as Float32Array)).toEqual(expected)
      one.dispose()
    }
    for (const op of ops) op.dispose()
  },
)

test('a pre-multiplied sum reads its device scalar, which differs per rank, when the operation runs', () => {
  const scalars = ranks.map((rank) => floats(rank, [rank + 1]))
  const ops = communicators.map((communicator, rank) => communicator.createPreMulSum(scalars[rank] as TestMemory))
  const memory = ranks.map((rank) => floats(rank, [1]))
  const recv = TestMemory.zeros(0, 'f32', 1)
  const run = () =>
    everywhere((communicator, rank, stream) => {
      const op = ops[rank] as (typeof ops)[number]
      communicator.reduce(memory[rank] as TestMemory, rank === 0 ? recv : null, { root: 0, op, stream })
    })
  run()
  expect(recv.floats()).toEqual([1 + 2 + 3])
  scalars[2]?.write(Float32Array.of(10))
  run()
  expect(recv.floats()).toEqual([1 + 2 + 10])
  expect(ops[0]?.scalar).toBe(scalars[0])
  for (const op of ops) op.dispose()
  for (const one of [...memory, ...scalars, recv]) one.dispose()
})

test('a pre-multiplied sum is refused for other types, other communicators and after dispose', () => {
  const [communicator, stream] = first()
  const memory = floats(0, [1])
  const integers = TestMemory.from(0, Int32Array.of(1))
  const op = communicator.createPreMulSum(2, { dtype: 'f32' })
  expect(() => communicator.allReduce(integers, integers, { op, stream })).toThrow(
    'op must be for elements of i32, not of f32',
  )
  const elsewhere = communicators[1]?.createPreMulSum(2, { dtype: 'f32' })
  expect(() => communicator.allReduce(memory, memory, { op: elsewhere as never, stream })).toThrow(
    'must be made by this communicator',
  )
  elsewhere?.dispose()
  op.dispose()
  op.dispose()
  expect(op.disposed).toBe(true)
  expect(errorOf(() => communicator.allReduce(memory, memory, { op, stream }))).toBeInstanceOf(DisposedError)
  for (const one of [memory, integers]) one.dispose()
})

test('a pre-multiplied sum refuses scalars of a wrong type, and types that cannot be reduced', () => {
  const [communicator] = first()
  expect(() => communicator.createPreMulSum(2)).toThrow('dtype')
  expect(() => communicator.createPreMulSum(2, { dtype: 'complex64' })).toThrow('cannot reduce')
  expect(() => communicator.createPreMulSum(300, { dtype: 'u8' })).toThrow(RangeError)
  expect(() => communicator.createPreMulSum(0.5, { dtype: 'i32' })).toThrow(TypeError)
  expect(() => communicator.createPreMulSum('2' as never, { dtype: 'f32' })).toThrow(TypeError)
  expect(() => communicator.createPreMulSum(2, { dtype: 'f31' as never })).toThrow(/dtype must be .*'f32'/)
  const elsewhere = floats(1, [1])
  expect(() => communicator.createPreMulSum(elsewhere)).toThrow('belongs to device 1')
  elsewhere.dispose()
  const short = new TestMemory(0, 2)
  expect(() => communicator.createPreMulSum(short, { dtype: 'f32' })).toThrow(RangeError)
  expect(() => communicator.createPreMulSum(floats(0, [1]), { dtype: 'f64' })).toThrow('memory of f64, not of f32')
  short.dispose()
})

test('a pre-multiplied sum ends with its communicator', async () => {
  for (const end of ['destroy', 'abort'] as const) {
    const [communicator] = await Communicator.initAll([0])
    const op = communicator?.createPreMulSum(2, { dtype: 'f32' })
    await communicator?.[end]()
    expect(op?.disposed).toBe(true)
    op?.dispose()
  }
})

test('a pre-multiplied sum prints one line, also after disposal', () => {
  const [communicator] = first()
  const op = communicator.createPreMulSum(2, { dtype: 'f32' })
  expect(inspect(op)).toBe("PreMulSum { dtype: 'f32' }")
  op.dispose()
  expect(inspect(op)).toBe("PreMulSum { dtype: 'f32', disposed: true }")
})

test('createPreMulSum refuses an unknown option by name', () => {
  const [communicator] = first()
  expect(() => communicator.createPreMulSum(2, { dtype: 'f32', type: 'f32' } as never)).toThrow(
    "Communicator.createPreMulSum: options must have only the keys dtype, not 'type'",
  )
})

test('an operator made by raw functions is passed by its id', () => {
  const made = communicators.map((communicator, rank) => {
    const id = new Int32Array(1)
    const scalar = Float32Array.of(10 ** rank)
    const host = ncclScalarResidence_t.ncclScalarHostImmediate
    expect(ncclRedOpCreatePreMulSum(id, scalar, ncclDataType_t.ncclFloat32, host, communicator.handle)).toBe(0)
    return id[0] as number
  })
  const memory = ranks.map((rank) => floats(rank, [1, 2]))
  everywhere((communicator, rank, stream) => {
    const one = memory[rank] as TestMemory
    communicator.allReduce(one, one, { op: made[rank] as number, stream })
  })
  for (const one of memory) expect(one.floats()).toEqual([111, 222])
  for (const [rank, id] of made.entries()) {
    expect(ncclRedOpDestroy(id as ncclRedOp_t, (communicators[rank] as Communicator).handle)).toBe(0)
  }
  const [communicator, stream] = first()
  const [one] = memory as [TestMemory]
  for (const op of [-1, 2 ** 31]) expect(() => communicator.allReduce(one, one, { op, stream })).toThrow(RangeError)
  expect(() => communicator.allReduce(one, one, { op: 0.5, stream })).toThrow(TypeError)
  for (const each of memory) each.dispose()
})

test('an operator of another copy of the package is refused', async () => {
  const other = await secondCopy()
  const [communicator, stream] = first()
  const memory = floats(0, [1])
  const [theirs] = (await other.Communicator.initAll([0])) as [Communicator]
  const op = theirs.createPreMulSum(2, { dtype: 'f32' })
  expect(() => communicator.allReduce(memory, memory, { op, stream })).toThrow('Two copies of the package are loaded')
  await theirs.destroy()
  memory.dispose()
})
