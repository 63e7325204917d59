import { type Device, DeviceBuffer } from '@shoal/driver'
import type { Layout, ModelSize } from './model.js'

export type Floats = DeviceBuffer<'f32'>

/** Sizes that determine how much memory a network needs. */
export interface Needs {
  readonly size: ModelSize
  readonly layout: Layout
  /** The most rows of activations, one a character. */
  readonly rows: number
  /** Characters of the text. */
  readonly text: number
  /** Numbers that the blocks of one sum leave as parts. */
  readonly parts: number
  /** Losses that are kept. */
  readonly losses: number
}

/** All that a network has on its device, as parts of one allocation. */
export type Memory = ReturnType<typeof arrange> & {
  readonly all: Floats
  /** The weights, the two averages of AdamW and the number of steps: what a checkpoint has. */
  readonly state: Floats
  /** The state and the text, which lie first; all else is made anew in each step. */
  readonly lasting: Floats
}

export function allocate(device: Device, needs: Needs): Memory {
  // Once to know how much it is, then again with the memory at hand.
  let length = 0
  const taken = (count: number): number => {
    const at = length
    length += Math.ceil(count / 64) * 64
    return at
  }
  arrange(needs, (count) => void taken(count) as never)
  const all = DeviceBuffer.zeros(device, 'f32', length)
  length = 0
  const parts = arrange(needs, (count) => {
    const at = taken(count)
    return all.slice(at, at + count)
  })
  const upTo = ({ address, byteLength }: Floats): Floats =>
    all.slice(0, (Number(address - all.address) + byteLength) / Float32Array.BYTES_PER_ELEMENT)
  return { ...parts, all, state: upTo(parts.step), lasting: upTo(parts.text) }
}

function arrange({ size, layout, rows, text, parts, losses }: Needs, floats: (count: number) => Floats) {
  const { width, heads, vocabulary } = size
  return {
    weights: floats(layout.count),
    means: floats(layout.count),
    squares: floats(layout.count),
    // Whole numbers, as the next one.
    step: floats(1),
    text: floats(text),
    tokens: floats(rows),
    targets: floats(rows),
    losses: floats(losses),
    /** The loss is behind them, so that one all-reduce sums both. */
    gradients: floats(layout.count + 1),
    embedded: floats(rows * width),
    layers: Array.from({ length: size.layers }, () => ({
      normal1: floats(rows * width),
      statistics1: floats(rows * 2),
      qkv: floats(rows * 3 * width),
      logSums: floats(rows * heads),
      attended: floats(rows * width),
      between: floats(rows * width),
      normal2: floats(rows * width),
      statistics2: floats(rows * 2),
      inner: floats(rows * 4 * width),
      active: floats(rows * 4 * width),
      out: floats(rows * width),
    })),
    normal: floats(rows * width),
    statistics: floats(rows * 2),
    logits: floats(rows * vocabulary),
    rowLosses: floats(rows),
    // Gradients of the named values; the layers use them one after the other.
    dOut: floats(rows * width),
    dNormal: floats(rows * width),
    dAttended: floats(rows * width),
    dQkv: floats(rows * 3 * width),
    dInner: floats(rows * 4 * width),
    deltas: floats(rows * heads),
    parts: floats(parts),
  }
}
