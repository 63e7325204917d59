import type { Stream } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { Communicator } from '@shoal/nccl'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { BenchData } from '../src/bench/collectives/data.js'
import { measureCollective, variantsOf } from '../src/bench/collectives/measure.js'
import { type Operation, operations, prepareCall, prepareStart } from '../src/bench/collectives/operations.js'
import type { CollectiveRow } from '../src/bench/figures.js'
import { type BenchOptions, firstRunsOf } from '../src/bench/options.js'
import { groupOf, groupOfThree, read, sixMilliseconds } from './support/bench.js'

useSoftwareDevice({ devices: 2 })
afterEach(() => void vi.restoreAllMocks())

describe('measurements of a collective', () => {
  const gather = operations.find(({ name }) => name === 'all-gather')!
  const variant = { type: 'f32', op: 'sum', root: 0 } as const

  /** Measures all-gather. Also returns the number of its first rank's calls before each row and after the last. */
  async function measure(options: BenchOptions, changed: Partial<Operation> = {}, group = groupOf([0])) {
    let calls = 0
    const counts: number[] = []
    const { prepare: _, ...plain } = gather
    const operation: Operation = {
      ...plain,
      bind: (...operands) => {
        const call = gather.bind(...operands)
        return () => {
          calls += 1
          call()
        }
      },
      ...changed,
    }
    const rows: CollectiveRow[] = []
    const all = await measureCollective(operation, [variant], group, options, (row) => {
      rows.push(row)
      counts.push(calls)
    })
    expect(all).toEqual(rows)
    return { rows, counts }
  }

  test('warm up before each size, and longer before the first size of each placement', async () => {
    const options = read('all-gather', '-b', '256K', '-e', '512K', '-n', '3', '-w', '2', '-c', '0')
    const { rows, counts } = await measure(options)
    expect(rows.map(({ bytes, count }) => [bytes, count])).toEqual([
      [2 ** 18, 2 ** 16],
      [2 ** 19, 2 ** 17],
    ])
    const first = 2 * (firstRunsOf(2 ** 18) + 2 + 3)
    expect(counts).toEqual([first, first + 2 * (2 + 3)])
    // The results are those of one additional call.
    const checked = await measure({ ...options, check: true, inPlace: 'out' })
    expect(checked.counts).toEqual([first / 2 + 1, first / 2 + 1 + 2 + 3 + 1])
    expect(checked.rows.map(({ outOfPlace, inPlace }) => [outOfPlace?.wrong, inPlace])).toEqual([
      [0, null],
      [0, null],
    ])
  })

  test('on a GPU warm up for 50 ms at first and for 5 ms later, by the mean of all processes', async () => {
    const options = { ...read('all-gather', '-b', '1M', '-e', '2M', '-n', '3', '-w', '2'), software: false }
    for (const [each, first, second] of [
      // Each of 5 calls takes 2 ms here, and 4 ms on average over the ranks.
      [2, 13, 2],
      [5, 5, 1],
      // Too short for any clock.
      [0, 5000, 5000],
    ] as const) {
      let calls = 0
      vi.spyOn(performance, 'now').mockImplementation(() => calls * each)
      const { prepare: _, ...plain } = gather
      const operation: Operation = {
        ...plain,
        bind: (...operands) => {
          const call = gather.bind(...operands)
          return () => {
            calls += 1
            // The first ten calls must move data; others need not.
            if (calls < 10) call()
          }
        },
      }
      const group = groupOf([0], { processes: 3, sum: async (value) => value * 6 })
      const counts: number[] = []
      const asked = { ...options, check: false, inPlace: 'in' } as const
      await measureCollective(operation, [variant], group, asked, () => counts.push(calls))
      const [atFirst = 0, later = 0] = counts
      expect([atFirst - firstRunsOf(2 ** 20), later - atFirst].map((count) => count - 2 - 5 - 3)).toEqual([
        first,
        second,
      ])
      vi.restoreAllMocks()
    }
  })

  test('skip sizes without an element, and measure the same number of elements once', async () => {
    const options = read('all-gather', '-b', '1', '-e', '9', '-i', '1', '-n', '1', '-w', '0')
    const { rows } = await measure(options)
    expect(rows.map(({ bytes }) => bytes)).toEqual([4, 8])
    expect((await measure({ ...options, sweep: { ...options.sweep, most: 3 } })).rows).toEqual([])
  })

  test('detect memory that the operation left unchanged', async () => {
    const idle: Partial<Operation> = { bind: () => () => undefined }
    const options = read('all-gather', '-b', '64', '-e', '64', '-n', '1', '-w', '0', '--in-place', 'out')
    const { rows } = await measure(options, idle, groupOf([0, 1]))
    // All elements of both ranks, in two parts each, are wrong.
    expect(rows[0]?.outOfPlace?.wrong).toBe(32)
  })

  test('abort on failure, report further errors, and throw the first', async () => {
    const fault = new Error('a fault')
    vi.spyOn(BenchData.prototype, 'wrong').mockRejectedValue(fault)
    const print = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const abort = vi.spyOn(Communicator.prototype, 'abort')
    const options = read('all-gather', '-b', '64', '-e', '64', '-n', '1', '-w', '0')
    await expect(measure(options)).rejects.toBe(fault)
    expect([abort.mock.calls.length, print.mock.calls.length]).toEqual([1, 0])
    abort.mockRejectedValueOnce(new Error('and another'))
    await expect(measure(options)).rejects.toBe(fault)
    expect(print.mock.calls).toEqual([['shoal bench: Error: and another']])
  })

  test('work for one rank, including ranks that send to themselves', async () => {
    const options = read('all-gather', '-b', '64', '-e', '64', '-n', '1', '-w', '0')
    for (const operation of operations) {
      const [row] = await measureCollective(operation, [variant], groupOf([0]), options, () => undefined)
      expect([operation.name, row?.outOfPlace?.wrong]).toEqual([operation.name, 0])
    }
  })
})

describe('operations of the collective benchmark', () => {
  test('pass exactly the arguments that their calls take', () => {
    const stream = {} as Stream
    const call = { communicator: {}, send: {}, recv: {}, stream, op: 'max', root: 3 } as never
    for (const operation of operations) {
      const bind = vi.fn(() => () => undefined)
      prepareCall({ ...operation, bind }, call)
      const { reduces, rooted } = operation
      expect(bind).toHaveBeenCalledWith(
        {},
        {},
        {},
        {
          stream,
          ...(reduces && { op: 'max' }),
          ...(rooted && { root: 3 }),
        },
      )
    }
  })

  test('started by one rank alone use no group', () => {
    const launch = vi.fn()
    const [operation] = operations as [Operation]
    const call = { communicator: {}, send: {}, recv: {}, stream: {}, op: 'sum', root: 0 } as never
    prepareStart({ ...operation, prepare: () => ({ launch }) as never }, [call])()
    expect(launch).toHaveBeenCalledTimes(1)
  })

  test('have a variant for each meaningful combination of options', () => {
    const all = read('reduce', '-d', 'f32,f16', '-o', 'max,sum', '-r', 'all')
    const named = (name: string) => operations.find((one) => one.name === name)!
    const variants = (name: string, root = -1) =>
      variantsOf(named(name), 2, { ...all, root }).map(({ type, op, root }) => `${type} ${op} ${root}`)
    expect(variants('reduce')).toEqual(
      ['f32', 'f16'].flatMap((type) => ['max', 'sum'].flatMap((op) => [0, 1].map((root) => `${type} ${op} ${root}`))),
    )
    expect(variants('reduce', 1)).toEqual(['f32 max 1', 'f32 sum 1', 'f16 max 1', 'f16 sum 1'])
    expect(variants('all-reduce')).toEqual(['f32 max 0', 'f32 sum 0', 'f16 max 0', 'f16 sum 0'])
    expect(variants('broadcast')).toEqual(['f32 sum 0', 'f32 sum 1', 'f16 sum 0', 'f16 sum 1'])
    expect(variants('all-gather', 7)).toEqual(['f32 sum 0', 'f16 sum 0'])
    const sized = (name: string, most: number) => () =>
      variantsOf(named(name), 2, { ...all, sweep: { ...all.sweep, most } })
    for (const [name, most] of [
      ['reduce', 4],
      ['all-gather', 8],
      ['reduce-scatter', 8],
    ] as const) {
      expect(sized(name, most)).not.toThrow()
      expect(sized(name, most - 1)).toThrow(
        `--max-bytes ${most - 1} is less than one element of f32 for each rank: ${most} bytes`,
      )
    }
  })
})

test('the time of a collective is the mean over iterations and processes', async () => {
  const own: number[] = []
  const words = 'all-reduce -n 4 -w 0 -c 0 -b 1K -e 1K -d f32 --in-place out'
  const options = read(...words.split(' '))
  const operation = operations.find(({ name }) => name === 'all-reduce')!
  sixMilliseconds()
  const group = groupOfThree(own, [0, 1])
  const rows = await measureCollective(
    operation,
    [{ type: 'f32', op: 'sum', root: 0 }],
    group,
    options,
    () => undefined,
  )
  expect(own).toEqual([1500])
  // All ranks start together.
  expect(group.barrier).toHaveBeenCalledTimes(1)
  expect(rows.map(({ outOfPlace }) => outOfPlace)).toEqual([
    { microseconds: 2500, algorithmBandwidth: 1024 / 2500 / 1000, busBandwidth: 1024 / 2500 / 1000, wrong: null },
  ])
})
