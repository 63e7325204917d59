import type { Device, Kernel, KernelArguments, Module, Stream } from '@shoal/driver'
import { compile, Program } from '@shoal/driver/compile'
import { source } from './kernels.js'
import { allocate, type Floats, type Memory } from './memory.js'
import { type Layout, layoutOf, type ModelSize } from './model.js'

const product = ['ptr', 'ptr', 'i32', 'i32', 'i32', 'ptr', 'ptr'] as const

/**
 * All kernels and the types of their parameters: TypeScript checks calls by them, Shoal checks them by the compiled
 * code.
 */
const signatures = {
  pick: ['ptr', 'i32', 'ptr', 'u32', 'i32', 'i32', 'ptr', 'ptr'],
  embed: ['ptr', 'ptr', 'ptr', 'i32', 'ptr'],
  normalize: ['ptr', 'ptr', 'i32', 'ptr', 'ptr'],
  normalizeBackward: ['ptr', 'ptr', 'ptr', 'ptr', 'i32', 'i32', 'ptr'],
  gainParts: ['ptr', 'ptr', 'ptr', 'i32', 'ptr'],
  characterParts: ['ptr', 'ptr', 'i32', 'ptr'],
  sumParts: ['ptr', 'i32', 'i32', 'ptr'],
  'multiply<false, false, STORE>': product,
  'multiply<false, false, ADD>': product,
  'multiply<false, false, GELU>': product,
  'multiply<true, false, STORE>': product,
  'multiply<false, true, STORE>': product,
  'multiply<false, true, GELU_BACKWARD>': product,
  attend: ['ptr', 'ptr', 'ptr'],
  attendBackwardQueries: ['ptr', 'ptr', 'ptr', 'ptr', 'ptr', 'ptr'],
  attendBackwardKeys: ['ptr', 'ptr', 'ptr', 'ptr', 'ptr'],
  crossEntropy: ['ptr', 'ptr', 'i32', 'f32', 'ptr'],
  sumAll: ['ptr', 'i32', 'ptr'],
  adamW: ['ptr', 'ptr', 'ptr', 'ptr', 'ptr', 'i32', 'i32', 'f32', 'f32', 'i32', 'i32'],
  endStep: ['ptr', 'ptr', 'i32', 'ptr'],
} as const

type Signatures = typeof signatures
type KernelName = keyof Signatures
type ProductName = Extract<KernelName, `multiply${string}`>
type Kernels = { readonly [N in KernelName]: Kernel<Signatures[N]> }
type Sizes = readonly [x: number, y?: number, z?: number]

/** Receives every launch, for a program that repeats them, such as the one in C++ for comparison. */
export type Recorder = (kernel: Kernel, grid: Sizes, block: Sizes, values: readonly unknown[]) => void

/** The source, and which templates of it are used. */
export const program = new Program(source, {
  name: 'gpt.cu',
  nameExpressions: Object.keys(signatures).filter((name) => name.startsWith('multiply')),
})

/** The sizes that are compiled into the kernels. */
export function definesFor({ context, width, heads, vocabulary }: ModelSize) {
  return { CONTEXT: context, WIDTH: width, HEADS: heads, VOCABULARY: vocabulary, TILE: width >= 256 ? 128 : 32 }
}

const threads = 256
/** A warp for each row. */
const byRow = [32, 8] as const
const blocksFor = (count: number, each = threads): Sizes => [Math.ceil(count / each)]

/** The model on one device: its kernels, its memory, and the work of the forward and backward passes. */
export class Network {
  readonly device: Device
  readonly size: ModelSize
  readonly layout: Layout
  readonly memory: Memory
  recorder: Recorder | undefined
  readonly #module: Module
  readonly #kernels: Kernels
  readonly #tile: number
  /** Blocks that keep the device busy. */
  readonly #enough: number
  readonly #rows: number

  /**
   * Compiles the kernels for these sizes, and makes room for so many sequences at once, a text of a length, and losses.
   */
  static async create(
    device: Device,
    size: ModelSize,
    { sequences, text, losses }: { readonly sequences: number; readonly text: number; readonly losses: number },
  ): Promise<Network> {
    const layout = layoutOf(size)
    const module = await compile(device, program, { defines: definesFor(size) })
    return new Network(device, module, { size, layout, rows: sequences * size.context, text, losses })
  }

  private constructor(
    device: Device,
    module: Module,
    needs: { readonly size: ModelSize; readonly layout: Layout; rows: number; text: number; losses: number },
  ) {
    this.device = device
    this.size = needs.size
    this.layout = needs.layout
    this.#module = module
    this.#tile = definesFor(needs.size).TILE
    this.#rows = needs.rows
    this.#enough = 2 * device.attribute('MULTIPROCESSOR_COUNT')
    const kernels = Object.entries(signatures).map(([name, signature]) => [name, module.kernel(name, signature)])
    this.#kernels = Object.fromEntries(kernels) as Kernels
    const parts = needs.layout.all.map(({ name, rows, columns }) => {
      if (name === 'positions') return 0
      const isProduct = name !== 'characters' && !name.startsWith('gain')
      return rows * columns * (isProduct ? this.#shares(rows, columns) : this.#rowShares)
    })
    this.memory = allocate(device, { ...needs, parts: Math.max(...parts) })
  }

  /** The weights of that name, or their gradients. */
  part(name: string, of: Floats = this.memory.weights): Floats {
    const found = this.layout.all.find((each) => each.name === name)
    if (found === undefined) throw new RangeError(`there are no weights called ${name}`)
    return of.slice(found.offset, found.offset + found.rows * found.columns)
  }

  /** Queues the choice of the characters of a step; `first` is the number of the first of these sequences. */
  queuePick(stream: Stream, seed: number, first: number, text: number): void {
    const { memory } = this
    this.#launch(
      stream,
      'pick',
      blocksFor(this.#rows),
      [threads],
      memory.text,
      text,
      memory.step,
      seed >>> 0,
      first,
      this.#rows,
      memory.tokens,
      memory.targets,
    )
  }

  /** Queues the way from `memory.tokens` to `memory.logits`. */
  queueForward(stream: Stream, sequences: number): void {
    const { memory, size } = this
    const { context, width, vocabulary } = size
    const rows = sequences * context
    const normalize = (x: Floats, gain: number, out: Floats, statistics: Floats): void =>
      this.#launch(stream, 'normalize', blocksFor(rows, 8), byRow, x, this.part(`gain${gain}`), rows, out, statistics)
    const multiply = (
      name: ProductName,
      a: Floats,
      weights: string,
      [inner, columns]: readonly [number, number],
      out: Floats,
      other?: Floats,
    ): void => this.#multiply(stream, name, a, this.part(weights), [rows, columns, inner], out, other)

    const [characters, positions] = [this.part('characters'), this.part('positions')]
    let x = memory.embedded
    this.#launch(stream, 'embed', blocksFor(rows * width), [threads], memory.tokens, characters, positions, rows, x)
    for (const [layer, has] of memory.layers.entries()) {
      normalize(x, 2 * layer, has.normal1, has.statistics1)
      multiply('multiply<false, false, STORE>', has.normal1, `qkv${layer}`, [width, 3 * width], has.qkv)
      const grid = this.#attentionGrid(sequences)
      this.#launch(stream, 'attend', grid, [Math.min(128, context)], has.qkv, has.attended, has.logSums)
      multiply('multiply<false, false, ADD>', has.attended, `join${layer}`, [width, width], has.between, x)
      normalize(has.between, 2 * layer + 1, has.normal2, has.statistics2)
      multiply('multiply<false, false, GELU>', has.normal2, `up${layer}`, [width, 4 * width], has.active, has.inner)
      multiply('multiply<false, false, ADD>', has.active, `down${layer}`, [4 * width, width], has.out, has.between)
      x = has.out
    }
    normalize(x, 2 * memory.layers.length, memory.normal, memory.statistics)
    multiply('multiply<false, false, STORE>', memory.normal, 'head', [width, vocabulary], memory.logits)
  }

  /** Queues the loss and all gradients; those of one rank among several are its part of their sum. */
  queueBackward(stream: Stream, ranks: number): void {
    const { memory, size } = this
    const { context, width, vocabulary } = size
    const rows = this.#rows
    const sequences = rows / context
    const { dOut, dNormal, dAttended, dQkv, dInner, deltas, parts, gradients } = memory
    const sumParts = (name: string, count: number, from = parts): void => {
      const out = this.part(name, gradients)
      this.#launch(stream, 'sumParts', blocksFor(out.length), [threads], from, count, out.length, out)
    }
    /** From the gradient of a product to that of its weights, and to that of what went in. */
    const back = (
      weights: string,
      input: Floats,
      dProduct: Floats,
      [inner, columns]: readonly [number, number],
      dInput: Floats,
      beforeGelu?: Floats,
    ): void => {
      const shares = this.#shares(inner, columns)
      const out = shares === 1 ? this.part(weights, gradients) : parts
      const turned = 'multiply<true, false, STORE>'
      this.#multiply(stream, turned, input, dProduct, [inner, columns, rows], out, undefined, shares)
      if (shares > 1) sumParts(weights, shares)
      const name = beforeGelu ? 'multiply<false, true, GELU_BACKWARD>' : 'multiply<false, true, STORE>'
      this.#multiply(stream, name, dProduct, this.part(weights), [rows, inner, columns], dInput, beforeGelu)
    }
    const normalizeBack = (x: Floats, statistics: Floats, gain: number): void => {
      const name = `gain${gain}`
      const grid = [Math.ceil(width / threads), this.#rowShares] as const
      this.#launch(stream, 'gainParts', grid, [threads], dNormal, x, statistics, rows, parts)
      sumParts(name, this.#rowShares)
      const ofGain = this.part(name)
      const adds = gain < 2 * size.layers ? 1 : 0
      const values = [dNormal, x, statistics, ofGain, rows, adds, dOut] as const
      this.#launch(stream, 'normalizeBackward', blocksFor(rows, 8), byRow, ...values)
    }

    const scale = 1 / (rows * ranks)
    const { logits, targets, rowLosses } = memory
    this.#launch(stream, 'crossEntropy', blocksFor(rows, 8), byRow, logits, targets, rows, scale, rowLosses)
    this.#launch(stream, 'sumAll', [1], [1024], rowLosses, rows, gradients.slice(this.layout.count))
    back('head', memory.normal, logits, [width, vocabulary], dNormal)
    const last = memory.layers.at(-1)?.out ?? memory.embedded
    normalizeBack(last, memory.statistics, 2 * memory.layers.length)
    for (const [layer, has] of [...memory.layers.entries()].reverse()) {
      back(`down${layer}`, has.active, dOut, [4 * width, width], dInner, has.inner)
      back(`up${layer}`, has.normal2, dInner, [width, 4 * width], dNormal)
      normalizeBack(has.between, has.statistics2, 2 * layer + 1)
      back(`join${layer}`, has.attended, dOut, [width, width], dAttended)
      const [grid, block] = [this.#attentionGrid(sequences), [Math.min(128, context)] as const]
      const { qkv, attended, logSums } = has
      const queries = 'attendBackwardQueries'
      this.#launch(stream, queries, grid, block, qkv, attended, dAttended, logSums, dQkv, deltas)
      this.#launch(stream, 'attendBackwardKeys', grid, block, qkv, dAttended, logSums, deltas, dQkv)
      back(`qkv${layer}`, has.normal1, dQkv, [width, 3 * width], dNormal)
      normalizeBack(memory.layers[layer - 1]?.out ?? memory.embedded, has.statistics1, 2 * layer)
    }
    const grid = [vocabulary, this.#rowShares] as const
    this.#launch(stream, 'characterParts', grid, [Math.min(threads, width)], dOut, memory.tokens, rows, parts)
    sumParts('characters', this.#rowShares)
    // A row for each place of each sequence: the sequences are its parts.
    sumParts('positions', sequences, dOut)
  }

  /** Queues a step of AdamW with the present gradients, and the end of the step. */
  queueUpdate(stream: Stream, rate: number, decay: number, warmup: number, until: number): void {
    const { weights, gradients, means, squares, step, losses } = this.memory
    const { count, matrices } = this.layout
    this.#launch(
      stream,
      'adamW',
      blocksFor(count),
      [threads],
      weights,
      gradients,
      means,
      squares,
      step,
      count,
      matrices,
      rate,
      decay,
      warmup,
      until,
    )
    this.#launch(stream, 'endStep', [1], [1], gradients.slice(count), losses, losses.length, step)
  }

  dispose(): void {
    this.memory.all.dispose()
    this.#module.dispose()
  }

  #launch<N extends KernelName>(
    stream: Stream,
    name: N,
    grid: Sizes,
    block: Sizes,
    ...values: KernelArguments<Signatures[N]>
  ): void {
    const kernel = this.#kernels[name] as unknown as Kernel
    this.recorder?.(kernel, grid, block, values)
    kernel.launch({ grid, block, stream }, ...values)
  }

  #multiply(
    stream: Stream,
    name: ProductName,
    a: Floats,
    b: Floats,
    [rows, columns, inner]: readonly [number, number, number],
    out: Floats,
    other: Floats | null = null,
    shares = 1,
  ): void {
    const grid = [Math.ceil(columns / this.#tile), Math.ceil(rows / this.#tile), shares] as const
    this.#launch(stream, name, grid, [threads], a, b, rows, columns, inner, out, other)
  }

  #attentionGrid(sequences: number): Sizes {
    return [Math.ceil(this.size.context / 128), this.size.heads, sequences]
  }

  /**
   * How many blocks share each sum of a product over all rows: a small matrix alone would leave most of the device
   * idle.
   */
  #shares(rows: number, columns: number): number {
    const tiles = Math.ceil(rows / this.#tile) * Math.ceil(columns / this.#tile)
    return Math.max(1, Math.min(Math.floor(this.#enough / tiles), Math.ceil(this.#rows / 256)))
  }

  /** The same for sums of columns. */
  get #rowShares(): number {
    return Math.min(64, Math.ceil(this.#rows / 32))
  }
}
