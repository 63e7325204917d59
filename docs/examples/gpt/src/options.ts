import { parseArgs } from 'node:util'
import type { ModelSize, Training } from './model.js'

export const usage = `usage: main.js [OPTION …], or by shoal run -n RANKS

  --text FILE          what to learn from, more than once if wanted (default: the guides of this repository)
  --out FOLDER         where checkpoint.bin and loss.svg go (default: gpt-out)
  --resume             go on from the checkpoint that is there; its sizes and rates stay
  --steps N            steps in all; 0 with --resume: only --sample
  --every N            steps between two lines of progress, and two checkpoints
  --batch N            sequences of a step on each rank
  --context N, --width N, --heads N, --layers N    sizes of the model
  --rate X, --decay X, --warmup N, --until N       of AdamW; the rate has fallen to a tenth at step --until (default: --steps)
  --seed N             of the first weights, the order of the text, and samples
  --sample N           characters to write at the end
  --prompt TEXT        what they follow (default: a new line)
  --temperature X      below 1: less daring (default: 0.8)`

export interface Options {
  readonly text: readonly string[]
  readonly out: string
  readonly resume: boolean
  readonly steps: number
  readonly every: number
  readonly sample: number
  readonly prompt: string
  readonly temperature: number
  readonly seed: number
  readonly size: Omit<ModelSize, 'vocabulary'>
  readonly training: Training
}

/** What a GPU does in minutes, and a processor in seconds. */
const defaults = {
  gpu: { steps: 2000, every: 100, batch: 64, context: 256, width: 384, heads: 12, layers: 6, rate: 1e-3, warmup: 100 },
  software: { steps: 60, every: 10, batch: 4, context: 32, width: 32, heads: 2, layers: 2, rate: 3e-3, warmup: 10 },
}

/** @throws TypeError, RangeError for unknown options and wrong values */
export function readOptions(words: readonly string[], isSoftware: boolean): Options {
  const text = { type: 'string' } as const
  const names = ['steps', 'every', 'batch', 'context', 'width', 'heads', 'layers', 'rate', 'warmup'] as const
  const others = ['out', 'prompt', 'decay', 'until', 'seed', 'sample', 'temperature'] as const
  const { values } = parseArgs({
    args: [...words],
    options: {
      ...(Object.fromEntries([...names, ...others].map((name) => [name, text])) as Record<string, typeof text>),
      text: { type: 'string', multiple: true, default: [] },
      resume: { type: 'boolean', default: false },
    },
  })
  const given = new Map(Object.entries(values).map(([name, value]) => [name, String(value)]))
  const number = (name: string, otherwise: number, least = 1): number => {
    const value = Number(given.get(name) ?? otherwise)
    const mayBeFraction = ['rate', 'decay', 'temperature'].includes(name)
    if (value >= least && (mayBeFraction || Number.isInteger(value)) && value < 2 ** 31) return value
    throw new RangeError(`--${name} must be ${mayBeFraction ? 'a number' : 'an integer'} of at least ${least}`)
  }
  const kind = defaults[isSoftware ? 'software' : 'gpu']
  const steps = number('steps', kind.steps, 0)
  const seed = number('seed', 1, 0)
  return {
    text: values.text,
    out: given.get('out') ?? 'gpt-out',
    resume: values.resume,
    steps,
    every: number('every', kind.every),
    sample: number('sample', 0, 0),
    prompt: given.get('prompt') ?? '\n',
    temperature: number('temperature', 0.8, 1e-3),
    seed,
    size: {
      context: number('context', kind.context),
      width: number('width', kind.width),
      heads: number('heads', kind.heads),
      layers: number('layers', kind.layers),
    },
    training: {
      batch: number('batch', kind.batch),
      seed,
      rate: number('rate', kind.rate, 0),
      decay: number('decay', 0.1, 0),
      warmup: number('warmup', kind.warmup, 0),
      until: number('until', Math.max(1, steps)),
    },
  }
}
