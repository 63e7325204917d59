/** The sizes of a model. */
export interface ModelSize {
  /** Characters that it looks back at, and learns from at once. */
  readonly context: number
  /** Numbers for each character in a row of activations; a multiple of 32 and of `heads`. */
  readonly width: number
  readonly heads: number
  readonly layers: number
  /** Characters that there are. */
  readonly vocabulary: number
}

/** Where one matrix, or one gain of a layer norm, lies among the weights. */
export interface Weights {
  readonly name: string
  readonly offset: number
  readonly rows: number
  readonly columns: number
}

/** All weights of a model, one behind the other: matrices, then gains, which do not decay. */
export interface Layout {
  readonly all: readonly Weights[]
  /** Weights of matrices. */
  readonly matrices: number
  readonly count: number
}

/** The weights of one layer. */
export const layerMatrices = ['qkv', 'join', 'up', 'down'] as const

/** @throws RangeError for sizes that the kernels are not made for */
export function layoutOf(size: ModelSize): Layout {
  const { context, width, heads, layers, vocabulary } = size
  for (const [name, value] of Object.entries(size)) {
    if (!Number.isInteger(value) || value < 1) throw new RangeError(`${name} must be a positive integer, not ${value}`)
  }
  if (width % 32 !== 0 || width % heads !== 0) {
    throw new RangeError(`width must be a multiple of 32 and of heads (${heads}), not ${width}`)
  }
  const shapes: (readonly [name: string, rows: number, columns: number])[] = [
    ['characters', vocabulary, width],
    ['positions', context, width],
  ]
  for (let layer = 0; layer < layers; layer += 1) {
    shapes.push([`qkv${layer}`, width, 3 * width], [`join${layer}`, width, width])
    shapes.push([`up${layer}`, width, 4 * width], [`down${layer}`, 4 * width, width])
  }
  shapes.push(['head', width, vocabulary])
  const matrices = shapes.reduce((sum, [, rows, columns]) => sum + rows * columns, 0)
  for (let gain = 0; gain <= 2 * layers; gain += 1) shapes.push([`gain${gain}`, 1, width])
  let count = 0
  const all = shapes.map(([name, rows, columns]) => {
    const offset = count
    count += rows * columns
    return { name, offset, rows, columns }
  })
  return { all, matrices, count }
}

/** The same numbers for the same seed, from 0 to 1. */
export function generator(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Gains of one; matrices as GPT-2 has them: normal, of deviation 0.02, and less where a layer adds to what comes by.
 */
export function initialWeights({ layers }: ModelSize, { all, count }: Layout, seed: number): Float32Array {
  const next = generator(seed)
  const weights = new Float32Array(count)
  for (const { name, offset, rows, columns } of all) {
    const deviation = /^(join|down)/.test(name) ? 0.02 / Math.sqrt(2 * layers) : 0.02
    for (let index = offset; index < offset + rows * columns; index += 1) {
      const normal = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
      weights[index] = name.startsWith('gain') ? 1 : deviation * normal
    }
  }
  return weights
}

/** How a model is trained. */
export interface Training {
  /** Sequences of a step on each rank. */
  readonly batch: number
  readonly seed: number
  /** The highest learning rate. */
  readonly rate: number
  /** How much of its matrices AdamW takes away at each step, times the rate. */
  readonly decay: number
  /** Steps over which the rate grows. */
  readonly warmup: number
  /** The step at which it has fallen to a tenth. */
  readonly until: number
}

function scramble(value: number): number {
  let x = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35)
  return (x ^ (x >>> 16)) >>> 0
}

/** Where a sequence of a step begins in a text of `length` characters: what the kernel `pick` says. */
export function startOf(sequence: number, step: number, seed: number, length: number, context: number): number {
  const ofStep = scramble((seed + Math.imul(step, 0x9e3779b9)) | 0)
  return scramble((ofStep + sequence) | 0) % (length - context)
}
