import assert from 'node:assert/strict'
import { DeviceBuffer, Module } from '@shoal/driver'
import type { TextureObject } from '@shoal/driver/texture'
import type { CaseContext } from '../../suite.js'
import { samplePtx } from './kernels.js'

/** A place in texels or from 0 to 1, a level, and a layer. */
export interface Place {
  readonly at: readonly number[]
  readonly level?: number
  readonly layer?: number
}

export type Sampler = (texture: TextureObject, places: readonly Place[]) => Promise<Uint32Array<ArrayBuffer>>

/** Loads a kernel that returns four words for each place. */
export function sampler(t: CaseContext, ...made: Parameters<typeof samplePtx>): Sampler {
  const kernel = t.own(Module.loadSync(t.device, samplePtx(...made))).kernel('sample', ['texture', 'ptr', 'ptr', 'u32'])
  return async (texture, places) => {
    const numbers = Float32Array.from(
      places.flatMap(({ at: [x = 0, y = 0, z = 0], level = 0, layer = 0 }) => [x, y, z, level, layer, 0, 0, 0]),
    )
    using given = DeviceBuffer.from(t.device, numbers)
    using out = DeviceBuffer.zeros(t.device, 'u32', places.length * 4)
    kernel.launch({ grid: Math.ceil(places.length / 64), block: 64 }, texture, given, out, places.length)
    return await out.toArray()
  }
}

export const floatsOf = (words: Uint32Array<ArrayBuffer>): Float32Array => new Float32Array(words.buffer)

export function assertNear(
  found: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
  what: string,
): void {
  for (let index = 0; index < expected.length; index += 1) {
    const [is, wanted] = [found[index] as number, expected[index] as number]
    assert.ok(Math.abs(is - wanted) <= tolerance, `${what}: value ${index} is ${is}, not ${wanted} (± ${tolerance})`)
  }
}

export const modes = ['wrap', 'clamp', 'mirror', 'border'] as const

/**
 * Returns places inside and outside of the texels, in steps that 8 fraction bits hold, and never where two texels meet.
 */
export function placesFor(t: CaseContext, sizes: readonly number[], isNormalized: boolean, count: number): Place[] {
  return Array.from({ length: count }, () => ({
    at: sizes.map((size) => {
      const texel = t.random.integer(-2 * size, 3 * size) + t.random.integer(1, 7) / 8
      const inside = Number.isInteger(texel) ? texel + 0.125 : texel
      return isNormalized ? inside / size : inside
    }),
  }))
}
