import { describe, expect, it } from 'vitest'
import { atMost, greatestRatio, leasts, medians, rowsOfNcclTests, rowsOfPerftest } from '../host/perfTables.mjs'

const ncclTests = (wrong = 0) => `# nThread 1 nGpus 2 minBytes 8 maxBytes 1024 step: 2(factor)
#  Rank  0 Group  0 Pid     43 on host device  0 [0x0f] a GPU
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    11.02    0.00    0.00       0    10.95    0.00    0.00       ${wrong}
    16777216       4194304     float     sum      -1    100.5  166.94  166.94       0     99.1  169.30  169.30     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 84.0
`

describe('output of other benchmarks', () => {
  it('of nccl-tests is parsed into sizes and both times', () => {
    expect(rowsOfNcclTests(ncclTests())).toEqual([
      { bytes: 8, outOfPlace: 11.02, inPlace: 10.95 },
      { bytes: 16_777_216, outOfPlace: 100.5, inPlace: 99.1 },
    ])
  })

  it('of nccl-tests with wrong results is never in agreement', () => {
    expect(() => rowsOfNcclTests(ncclTests(3))).toThrow(/nccl-tests found wrong results: 8 +2 +float/)
  })

  it('of perftests is parsed by the first figure after a size, between bars or blanks', () => {
    const text =
      'mype: 0 device name: a GPU\n| size(B) | scope | bw(GB/s) |\n| 1024 | None | 12.5 | 0.1 |\n 2048  None  25\n+---+\n'
    expect(rowsOfPerftest(text)).toEqual([
      { bytes: 1024, value: 12.5 },
      { bytes: 2048, value: 25 },
    ])
  })
})

describe('agreement of benchmarks', () => {
  const round = (...values: number[]) => values.map((value, index) => ({ bytes: 2 ** index, value }))
  const pick = (row: { value: number }): number => row.value

  it('uses medians of rounds, and the worst ratio of common sizes', () => {
    const ours = medians([round(1, 9), round(3, 10), round(2, 11)], pick)
    expect([...ours]).toEqual([
      [1, 2],
      [2, 10],
    ])
    expect([...leasts([round(3, 9), round(1, 10), round(2, 11)], pick)]).toEqual([
      [1, 1],
      [2, 9],
    ])
    const theirs = medians([round(1, 8, 7)], pick)
    expect(greatestRatio(ours, theirs, () => true)).toBe(2)
    expect(greatestRatio(ours, theirs, (bytes: number) => bytes > 1)).toBe(1.25)
    expect(greatestRatio(ours, theirs, (bytes: number) => bytes > 2)).toBeUndefined()
  })

  it('compares the ratio with a limit, and fails without a ratio', () => {
    expect(atMost('a', 1.1, 1.1)).toMatchObject([{ met: true, side: 'at most', unit: '' }])
    expect(atMost('a', 1.11, 1.1)).toMatchObject([{ met: false }])
    expect(atMost('a', undefined, 1)).toEqual([])
  })
})
