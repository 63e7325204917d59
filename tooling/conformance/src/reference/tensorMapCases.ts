import type { TiledOptions } from '@shoal/driver/texture'
import type { Random } from '../support/random.js'
import type { Named, TensorMapCase } from './cases.js'

type TensorMapDType = NonNullable<TiledOptions['dtype']>
const bits: Readonly<Record<TensorMapDType, number>> = {
  u8: 8,
  u16: 16,
  u32: 32,
  i32: 32,
  u64: 64,
  i64: 64,
  f16: 16,
  bf16: 16,
  f32: 32,
  'f32-ftz': 32,
  tf32: 32,
  'tf32-ftz': 32,
  f64: 64,
  'u4x16-align8': 4,
  'u4x16-align16': 4,
  'u6x16-align16': 6,
}
const dtypes = Object.keys(bits) as TensorMapDType[]
/** The most bytes in a row of a box for each swizzle. */
const swizzles = {
  none: 128,
  '32B': 32,
  '64B': 64,
  '128B': 128,
  '128B-atom32B': 128,
  '128B-atom32B-flip8B': 128,
  '128B-atom64B': 128,
}
const swizzleNames = Object.keys(swizzles) as (keyof typeof swizzles)[]
const promotions = ['none', '64B', '128B', '256B'] as const
const kinds = ['tiled', 'im2col', 'im2colWide'] as const

/**
 * Maps of every kind, type, swizzle, interleave, promotion and fill, with 1 to 5 dimensions. Each seed gives new sizes.
 */
export function tensorMapCases(random: Random): readonly (TensorMapCase & Named)[] {
  const cases: (TensorMapCase & Named)[] = []
  const pick = <T>(list: readonly T[]): T => list[random.integer(0, list.length - 1)] as T
  const address = (): string => `0x${(0x7f00_0000_0000 + random.integer(0, 2 ** 30) * 256).toString(16)}`
  const add = (
    kind: (typeof kinds)[number],
    dtype: TensorMapDType,
    more: Pick<TiledOptions, 'swizzle' | 'interleave' | 'l2Promotion' | 'outOfBoundsFill'> = {},
    dimensionCount = random.integer(kind === 'tiled' && more.interleave === undefined ? 1 : 3, 5),
  ): void => {
    const width = bits[dtype]
    const isPacked = width < 8
    const swizzle = more.swizzle ?? 'none'
    const most = (swizzles[swizzle] * 8) / width
    const inner = isPacked ? 128 : (random.integer(1, most / (128 / width)) * 128) / width
    const dimensions = Array.from({ length: dimensionCount }, (_, axis) =>
      axis === 0 ? (isPacked ? 128 : 1) * random.integer(1, isPacked ? 40 : 5000) : random.integer(1, 300),
    )
    let span = Math.ceil(((dimensions[0] as number) * width) / 8)
    const strides = dimensions.slice(1).map((size) => {
      const stride = Math.ceil(span / 32) * 32 + 32 * random.integer(0, 3)
      span = stride * size
      return stride
    })
    const elementStrides =
      random.integer(0, 2) === 0 ? { elementStrides: dimensions.map(() => random.integer(1, 8)) } : {}
    const common = { dtype, dimensions, strides, ...elementStrides, ...more }
    const places = { part: 'tensorMap' as const, address: address(), replaced: address() }
    const rest = Object.entries(more).map(([key, value]) => `${key} ${value}`)
    const name = [kind, dtype, `${dimensionCount} dimensions`, ...rest].join(', ')
    if (kind === 'tiled') {
      const box = dimensions.map((_, axis) =>
        axis === 0 ? Math.min(inner, 256) : random.integer(1, dimensionCount > 3 ? 8 : 32),
      )
      cases.push({ ...places, name, kind, options: { ...common, box } })
      return
    }
    const pixels = {
      ...common,
      channelsPerPixel: Math.min(inner, 256),
      pixelsPerColumn: pick([1, 7, 32, 64, 128, 256]),
    }
    const corner = (): number => random.integer(-3, 3)
    const corners = (): number[] => Array.from({ length: dimensionCount - 2 }, corner)
    if (kind === 'im2col')
      cases.push({ ...places, name, kind, options: { ...pixels, lowerCorner: corners(), upperCorner: corners() } })
    else {
      const ends = { lowerCornerWidth: corner(), upperCornerWidth: corner(), mode: pick(['w', 'w128'] as const) }
      cases.push({ ...places, name, kind, options: { ...pixels, ...ends } })
    }
  }
  for (const kind of kinds) {
    for (const dtype of dtypes) {
      for (const swizzle of swizzleNames) add(kind, dtype, { swizzle, l2Promotion: pick(promotions) })
      for (const l2Promotion of promotions) add(kind, dtype, { l2Promotion })
      for (const interleave of ['16B', '32B'] as const)
        add(kind, dtype, { interleave, swizzle: interleave === '32B' ? '32B' : 'none' })
      if (/f/.test(dtype)) add(kind, dtype, { outOfBoundsFill: 'nan', swizzle: '64B' })
    }
    for (let count = kind === 'tiled' ? 1 : 3; count <= 5; count += 1)
      for (let turn = 0; turn < 12; turn += 1) add(kind, pick(dtypes), { swizzle: pick(swizzleNames) }, count)
  }
  return cases
}
