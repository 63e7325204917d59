import type { Value } from '../../dist/reference/answer.js'

type Fields = { readonly [name: string]: Value }

/** Cases that the software device answers differently from the H200 whose answers are recorded. */
export interface Exception {
  readonly reason: string
  /** The number of such cases in the list. */
  readonly cases: number
  readonly isOf: (title: string) => boolean
  /** Replaces the exempt part of the software device's answer by the H200's, if only a part is exempt. */
  readonly exempt?: (answer: Fields) => Fields
}

/**
 * The number of clusters of eight blocks that run at once. The H200's real groups hold fewer than all multiprocessors
 * in one row.
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
