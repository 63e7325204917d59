import { describe, expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] ??= 'sim'
const { knownFault } = await import('@shoal/conformance')

type Call = Parameters<typeof knownFault>[0]
const call: Call = { collective: 'allReduce', dtype: 'f16', op: 'avg', count: 131_109, inPlace: false }
const alone = { version: 22803, worldSize: 1, inWindow: false }
const isKnown = (change: Partial<Call>, place: Partial<typeof alone> = {}): boolean =>
  knownFault({ ...call, ...change }, { ...alone, ...place }) !== undefined

describe('excluded faults of NCCL', () => {
  test('for a single rank include the failures of the run of 2026-11-21', () => {
    for (const collective of ['allReduce', 'reduce', 'reduceScatter'] as const) {
      for (const dtype of ['f16', 'bf16'] as const) expect(isKnown({ collective, dtype })).toBe(true)
    }
  })

  test('for a single rank exclude everything that passed', () => {
    for (const dtype of ['f32', 'f64', 'i8', 'u8', 'i32', 'i64'] as const) expect(isKnown({ dtype })).toBe(false)
    expect(isKnown({ inPlace: true })).toBe(false)
    expect(isKnown({ op: 'sum' })).toBe(false)
    for (const count of [0, 1, 7, 1999]) expect(isKnown({ op: 'preMulSum', count })).toBe(false)
    expect(isKnown({}, { worldSize: 2 })).toBe(false)
    expect(isKnown({}, { version: 22907 })).toBe(false)
  })

  test('for a single rank include 8-bit floats, which NCCL refuses to multiply', () => {
    for (const op of ['avg', 'preMulSum'] as const) {
      expect(isKnown({ op, dtype: 'f8e4m3', count: 1 })).toBe(true)
      expect(isKnown({ op, dtype: 'f8e5m2', count: 0 })).toBe(false)
    }
    expect(isKnown({ op: 'sum', dtype: 'f8e5m2', count: 1 })).toBe(false)
    expect(isKnown({ dtype: 'f8e5m2' }, { version: 23007 })).toBe(true)
    expect(isKnown({ dtype: 'f16' }, { version: 23007 })).toBe(false)
    expect(isKnown({ dtype: 'f8e5m2' }, { version: 22907 })).toBe(false)
  })

  test('with windows include exactly parts that are not a multiple of 8 bytes', () => {
    const gather = { collective: 'allGather', op: undefined, count: 7 } as const
    const window = { worldSize: 2, inWindow: true }
    expect(isKnown(gather, window)).toBe(true)
    expect(isKnown({ ...gather, count: 8 }, window)).toBe(false)
    expect(isKnown(gather, { worldSize: 2 })).toBe(false)
    expect(isKnown({ ...gather, collective: 'allReduce' }, window)).toBe(false)
    expect(isKnown(gather, { ...window, version: 23007 })).toBe(false)
  })

  test('with windows include averages of floats in 2.30.7, which has no kernel for them', () => {
    const window = { version: 23007, worldSize: 2, inWindow: true }
    for (const dtype of ['f16', 'bf16', 'f32', 'f8e4m3', 'f8e5m2'] as const)
      expect(isKnown({ dtype, count: 8 }, window)).toBe(true)
    expect(isKnown({ dtype: 'f64' }, window)).toBe(false)
    expect(isKnown({ count: 0 }, window)).toBe(false)
    expect(isKnown({ op: 'sum' }, window)).toBe(false)
    expect(isKnown({ collective: 'reduceScatter' }, window)).toBe(false)
    expect(isKnown({ dtype: 'i32' }, window)).toBe(false)
    expect(isKnown({}, { ...window, inWindow: false })).toBe(false)
    expect(isKnown({}, { ...window, version: 23008 })).toBe(false)
  })

  test('with windows include floats reduced in such parts', () => {
    const scatter = { collective: 'reduceScatter', op: 'sum' } as const
    const window = { worldSize: 2, inWindow: true }
    for (const count of [5, 7, 63]) expect(isKnown({ ...scatter, count }, window)).toBe(true)
    expect(isKnown({ ...scatter, dtype: 'f32', count: 879 }, window)).toBe(true)
    expect(isKnown({ ...scatter, dtype: 'f8e4m3', count: 3 }, window)).toBe(true)
    for (const count of [4, 8, 64]) expect(isKnown({ ...scatter, count }, window)).toBe(false)
    for (const dtype of ['i32', 'u8', 'f64'] as const)
      expect(isKnown({ ...scatter, dtype, count: 7 }, window)).toBe(false)
  })
})
