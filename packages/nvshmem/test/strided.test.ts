import { Device, DeviceBuffer } from '@shoal/driver'
import type { SymmetricBuffer } from '@shoal/nvshmem'
import { beforeAll, describe, expect, test } from 'vitest'
import { onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()
let four: SymmetricBuffer<'f32'>

beforeAll(async () => {
  four = await pe.session.allocate('f32', 4)
  await four.copyFrom(Float32Array.of(1, 2, 3, 4))
})

describe('strided transfers', () => {
  test('keep the elements between the strides, also those written during a get', async () => {
    const target = new Float32Array(7)
    const got = pe.session.getStrided(target, four, { pe: 0, count: 4, targetStride: 2 })
    target.fill(9)
    await got
    expect([...target]).toEqual([1, 9, 2, 9, 3, 9, 4])
    target.fill(8)
    pe.session.getStridedSync(target, four, { pe: 0, count: 2, targetStride: 3, sourceStride: 2 })
    expect([...target]).toEqual([1, 8, 8, 3, 8, 8, 8])
  })

  test('have separate strides for source and target, for arrays and for memory', async () => {
    const wide = await pe.session.allocate('f32', 8, { zeroed: true })
    await pe.session.putStrided(wide, Float32Array.of(1, 0, 2, 0, 3), {
      pe: 0,
      count: 3,
      targetStride: 3,
      sourceStride: 2,
    })
    expect([...(await wide.toArray())]).toEqual([1, 0, 0, 2, 0, 0, 3, 0])
    using memory = DeviceBuffer.from(Device.get(0), Float32Array.of(0, 0, 0, 0))
    await pe.session.getStrided(memory, wide, { pe: 0, count: 2, targetStride: 2, sourceStride: 3 })
    expect([...(await memory.toArray())]).toEqual([1, 0, 2, 0])
    await wide.dispose()
  })

  test('of no elements accept empty memory, and of one element any stride', async () => {
    const { session } = pe
    const empty = await session.allocate('f32', 0)
    await session.putStrided(empty, new Float32Array(0), { pe: 0, count: 0, targetStride: 9 })
    session.getStridedSync(new Float32Array(0), empty, { pe: 0, count: 0, sourceStride: 9 })
    const target = new Float32Array(1)
    await session.getStrided(target, four, { pe: 0, count: 1, targetStride: 9, sourceStride: 9 })
    expect([...target]).toEqual([1])
    await expect(session.getStrided(target, four, { pe: 0, count: 2 })).rejects.toThrow(
      'Session.getStrided: 2 elements of f32 in steps of 1 reach over 2 elements, target has 1',
    )
    await empty.dispose()
  })

  const array = Float32Array.of(1, 2, 3, 4)
  const wrong = [-1, 0, 0.5]
  refuses(
    pe,
    (['putStrided', 'getStrided', 'putStridedSync', 'getStridedSync'] as const).flatMap((name) =>
      (['targetStride', 'sourceStride'] as const).flatMap((stride) =>
        wrong.map((value) => {
          const sides = (): [never, never] => (name.startsWith('put') ? [four, array] : [array, four]) as never
          const call = (): unknown => pe.session[name](...sides(), { pe: 0, count: 1, [stride]: value })
          return [`${name} with ${stride} ${value}`, call, `Session.${name}: ${stride} must be`] as const
        }),
      ),
    ),
  )
})
