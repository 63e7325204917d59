import { describe, expect, test } from 'vitest'
import { figure, headLines, number, row, table, wrongLine } from '../src/bench/report/columns.js'
import { plot } from '../src/bench/report/plot.js'

test('a result table is as wide as needed, and its figures have three digits', () => {
  expect([0.01234, 9.999, 99.94, 100, 999.94, 1000, 123_456.7, Number.NaN].map(number)).toEqual([
    ...['0.0123', '10.0', '99.9', '100.0', '999.9', '1000', '123457', '–'],
  ])
  const rows = [
    ['a name', '1', '2.5'],
    ['b', '1000'],
  ]
  expect(table(['', 'one', 'two'], rows).split('\n')).toEqual([
    '         one  two',
    'a name     1  2.5',
    'b       1000',
  ])
})

test('figures have at most six characters, within their column', () => {
  expect([0.123, 999.994, 1000, 9999.94, 10_000, 123_456.7].map(figure)).toEqual([
    ...['0.12', '999.99', '1000.0', '9999.9', '10000', '123457'],
  ])
  expect([null, 0, 3].map((wrong) => wrongLine('elements', wrong))).toEqual([
    ...['# elements wrong: not checked', '# elements wrong: 0 OK', '# elements wrong: 3 FAILED'],
  ])
  const columns = [
    { head: 'one', unit: '(a)', width: 6 },
    { head: 'two', unit: '', width: 4 },
  ]
  expect(row(columns, ['x'])).toBe('     x     ')
  expect(headLines(columns, '  title')).toEqual(['# title', '#  one  two', '#  (a)     '])
})

describe('a plot of results', () => {
  /** Returns each text with its position. */
  const textsOf = (svg: string): string[] =>
    [...svg.matchAll(/<text[^>]*translate\(([\d.]+) ([\d.]+)\)[^>]*>([^<]*)</g)].map(
      ([, x, y, words]) => `${words} at ${Math.round(Number(x))} ${Math.round(Number(y))}`,
    )
  const line = (points: [number, number][], logarithmic = true) => ({
    ...{ title: 'time', unit: 'µs', logarithmic },
    lines: [{ name: 'float', points }],
  })
  const bars = (values: (number | null)[], more: (number | null)[]) => ({
    ...{ title: 'rate', unit: '1/s', names: ['one', 'two', 'three'] },
    bars: [
      { name: 'u32', values },
      { name: 'u64', values: more },
    ],
  })

  test('has its diagrams one below the other, with titles, names and sizes in place', async () => {
    const points: [number, number][] = [
      [1024, 0],
      [2 ** 20, 5],
      [2 ** 21, 10],
    ]
    const svg = await plot('title', 'subtitle', [line(points), bars([1, null, 3], [0, 2, 100])])
    expect(svg).toMatch(/^<svg width="1000" height="596" /)
    // Values without a logarithm are omitted: one point, and the bars of null and 0.
    expect(svg.match(/ecmeta_series_index="0" ecmeta_data_index="\d" ecmeta_ssr_type="chart"/g)).toHaveLength(2)
    expect(svg.match(/ecmeta_series_index="[12]" ecmeta_data_index="\d" ecmeta_ssr_type="chart"/g)).toHaveLength(4)
    const texts = textsOf(svg)
    expect(texts.slice(-4)).toEqual([
      ...['title at 500 10', 'subtitle at 500 10', 'time (µs) at 45 65', 'rate (1/s) at 45 405'],
    ])
    expect(texts).toEqual(
      expect.arrayContaining([
        ...['bytes at 420 368', '1K at 70 348', '1M at 706 348', '2M at 770 348', '1 at 62 340', '10 at 62 100'],
        ...['one at 312 456', 'two at 312 488', 'three at 312 520'],
        // One bar is so long that the others would be invisible.
        ...['1 at 320 544', '10 at 545 544', '100 at 770 544'],
        ...['float at 796 105', 'u32 at 796 126', 'u64 at 796 148'],
      ]),
    )
  })

  test('has axes that begin at 0 unless a value is much larger than the rest', async () => {
    const two: [number, number][] = [
      [8, 0],
      [2 ** 30, 4],
    ]
    const svg = await plot('', '', [line(two, false), bars([1, 2, 40], [null, null, null])])
    expect(svg.match(/ecmeta_series_index="0" ecmeta_data_index="\d" ecmeta_ssr_type="chart"/g)).toHaveLength(2)
    const texts = textsOf(svg)
    const of = (y: number): string[] =>
      texts.filter((text) => text.endsWith(` ${y}`)).map((text) => text.split(' ')[0]!)
    expect(of(348)).toEqual(expect.arrayContaining(['8', '1G']))
    expect(texts).toEqual(expect.arrayContaining(['0 at 62 340', '4 at 62 100']))
    expect(of(544)).toEqual(['0', '10', '20', '30', '40'])
    const longer = textsOf(await plot('', '', [bars([41, 2, 2], [null, null, null])]))
    expect(longer.filter((text) => text.endsWith(' 204')).map((text) => text.split(' ')[0])).toEqual(['1', '10', '100'])
  })

  test('is static, on white, with the given letter and mark sizes', async () => {
    const svg = await plot('title', 'subtitle', [line([[8, 1]]), bars([1, 2, 3], [4, 5, 6])])
    expect(svg).toContain('fill="#ffffff"')
    expect(svg).not.toMatch(/@keyframes|animation/)
    const sizeOf = (words: string): string | undefined =>
      new RegExp(`font-size:(\\d+)px[^>]*font-family:sans-serif[^>]*>${words}<`).exec(svg)?.[1]
    expect(['title', 'subtitle', 'time .µs.', 'two', 'float', 'bytes'].map(sizeOf)).toEqual([
      ...['18', '12', '13', '10', '11', '12'],
    ])
    // A point is 5 wide: a circle of radius 1, scaled by 2.5.
    expect(svg).toMatch(/matrix\(2\.5,0,0,2\.5,[^>]*ecmeta_series_index="0"/)
  })

  test('cuts names that are too long', async () => {
    const long = { ...bars([1, 2, 3], [4, 5, 6]), names: ['x'.repeat(200), 'y', 'z'] }
    expect(await plot('', '', [long])).toMatch(/>x{20,60}\.\.\.</)
  })

  test('has room for a single size', async () => {
    const texts = textsOf(await plot('', '', [line([[1536, 1]])]))
    expect(texts).toEqual(expect.arrayContaining(['1.5K at 70 348', '3K at 770 348']))
  })
})
