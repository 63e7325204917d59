/**
 * Computes the values of a texture from the programming guide's rules for addressing and filtering, without any device.
 * Texels are numbers, `channels` of them next to each other.
 */
import type { AddressMode } from '@shoal/driver/texture'

export interface ReferenceTexels {
  readonly values: ArrayLike<number>
  readonly channels: number
  /** Width, height and depth, one for each dimension. */
  readonly sizes: readonly number[]
  /** The layer or face. Slices of 3-D texels are a dimension. */
  readonly layer?: number
}

export interface ReferenceRules {
  readonly addressMode: readonly AddressMode[]
  readonly filtered: boolean
  readonly normalized: boolean
  readonly borderColor?: readonly number[]
}

/** A texel of one dimension with its weight. An undefined index is beyond the border. */
type Weighted = readonly [index: number | undefined, weight: number]

/** Returns one number of the texel at a place. */
export function sampled(
  texels: ReferenceTexels,
  rules: ReferenceRules,
  place: readonly number[],
  channel: number,
): number {
  const axes = texels.sizes.map((size, axis) =>
    weightsOf(
      (rules.normalized ? size : 1) * (place[axis] as number),
      size,
      rules.addressMode[axis] ?? 'clamp',
      rules.filtered,
    ),
  )
  return sum(texels, rules, axes, [], channel)
}

function sum(
  texels: ReferenceTexels,
  rules: ReferenceRules,
  axes: readonly Weighted[][],
  chosen: readonly (number | undefined)[],
  channel: number,
): number {
  const axis = axes[chosen.length]
  if (axis === undefined) return valueAt(texels, rules, chosen, channel)
  return axis.reduce(
    (total, [index, weight]) =>
      weight === 0 ? total : total + weight * sum(texels, rules, axes, [...chosen, index], channel),
    0,
  )
}

function valueAt(
  { values, channels, sizes, layer = 0 }: ReferenceTexels,
  rules: ReferenceRules,
  place: readonly (number | undefined)[],
  channel: number,
): number {
  if (place.includes(undefined)) return rules.borderColor?.[channel] ?? 0
  let index = layer
  for (let axis = sizes.length - 1; axis >= 0; axis -= 1)
    index = index * (sizes[axis] as number) + (place[axis] as number)
  return values[index * channels + channel] as number
}

/** `at` is in texels. */
function weightsOf(at: number, size: number, mode: AddressMode, isFiltered: boolean): Weighted[] {
  if (!isFiltered) return [[addressed(Math.floor(at), size, mode), 1]]
  const first = Math.floor(at - 0.5)
  const part = Math.round((at - 0.5 - first) * 256) / 256
  return [
    [addressed(first, size, mode), 1 - part],
    [addressed(first + 1, size, mode), part],
  ]
}

function addressed(index: number, size: number, mode: AddressMode): number | undefined {
  if (index >= 0 && index < size) return index
  if (mode === 'border') return undefined
  if (mode === 'clamp') return index < 0 ? 0 : size - 1
  const turn = Math.floor(index / size)
  const place = index - turn * size
  return mode === 'mirror' && turn % 2 !== 0 ? size - 1 - place : place
}
