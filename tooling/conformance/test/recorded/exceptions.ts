import type { Value } from '../../dist/reference/answer.js'

type Fields = { readonly [name: string]: Value }

/** Cases that the software device answers otherwise than the H200 whose answers are recorded. */
export interface Exception {
  readonly reason: string
  /** How many cases of the list. */
  readonly cases: number
  readonly isOf: (title: string) => boolean
  /** The software device's answer with what is exempt as the H200 has it, where that is only a part of it. */
  readonly exempt?: (answer: Fields) => Fields
}

/**
 * How many clusters of eight blocks run at once: all multiprocessors in a row hold more than those of the H200's real
 * groups.
 */
const activeClustersOfEight: Readonly<Record<number, number>> = { 132: 124, 82: 77, 66: 62, 33: 30 }

export const exceptions: readonly Exception[] = [
  {
    reason: 'it is another device: other memory, clocks and buses, and less that it can do',
    cases: 1,
    isOf: (title) => title.startsWith('device: '),
  },
  {
    reason: 'registers are counted by the compiler of NVIDIA alone',
    cases: 15,
    isOf: (title) => title.startsWith('kernel: '),
    exempt: (answer) => ({ ...answer, NUM_REGS: 10 }),
  },
  {
    reason: 'which multiprocessors of the H200 are together is a matter of that very chip',
    cases: 12,
    isOf: (title) => /^split: \{"multiprocessors":([12378]|64\},.*)\b/.test(title),
  },
  {
    reason: 'the same, of clusters',
    cases: 77,
    isOf: (title) => title.startsWith('occupancy: '),
    exempt: (answer) => {
      const found = answer['activeClusters 1']
      return typeof found !== 'number'
        ? answer
        : { ...answer, 'activeClusters 1': activeClustersOfEight[found] ?? found }
    },
  },
  {
    reason:
      'tensors of one dimension were asked for without a pointer to strides there, which the driver refuses; the list has one now',
    cases: 24,
    isOf: (title) => title.startsWith('tensorMap: ') && title.includes(', 1 dimensions'),
  },
  {
    reason: 'sRGB is made linear by a table of its own',
    cases: 2,
    isOf: (title) => /^texture: .*, srgb true/.test(title),
  },
  {
    reason:
      'the last bit of one to four samples, between texels of 8 bits with a sign or where one texel is far larger than others',
    cases: 4,
    isOf: (title) => /^texture: .*, linear, /.test(title),
  },
]
