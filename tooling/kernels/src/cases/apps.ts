import { createHash } from 'node:crypto'
import { casesOf } from '../corpus.js'
import { f64, u32 } from '../trial.js'

const { add } = casesOf('apps')

const { fround } = Math
const grid = (n: number, block: number) => ({ grid: Math.ceil(n / block), block })

add('nBody', async (t) => {
  const n = t.size(60, 200)
  const data = t.floats(n * 4, -2, 2)
  const [, out] = await t.run(grid(n, 64), data, new Float32Array(n * 4), n)
  const at = (i: number, k: number): number => data[i * 4 + k] as number
  const expected = new Float32Array(n * 4)
  for (let i = 0; i < n; i += 1) {
    const sums = [0, 0, 0]
    for (let j = 0; j < n; j += 1) {
      const d = [0, 1, 2].map((k) => fround(at(j, k) - at(i, k))) as [number, number, number]
      const square = fround(
        fround(fround(fround(d[0] * d[0]) + fround(d[1] * d[1])) + fround(d[2] * d[2])) + fround(0.01),
      )
      const factor = fround(at(j, 3) / fround(square * fround(Math.sqrt(square))))
      for (let k = 0; k < 3; k += 1) sums[k] = fround((sums[k] as number) + fround((d[k] as number) * factor))
    }
    expected.set([...sums, at(i, 3)], i * 4)
  }
  t.same(out as Float32Array, expected)
})
/** The normal distribution, by the series of its integral. */
function normal(x: number): number {
  if (x < -7) return 0
  let [sum, term] = [x, x]
  for (let k = 1; k < 200; k += 1) {
    term *= (x * x) / (2 * k + 1)
    sum += term
  }
  return x > 7 ? 1 : 0.5 + (Math.exp(-(x * x) / 2) / Math.sqrt(2 * Math.PI)) * sum
}
add('blackScholes', async (t) => {
  const n = t.size()
  const [prices, strikes, years] = [t.doubles(n, 20, 60), t.doubles(n, 20, 60), t.doubles(n, 0.25, 5)]
  const [rate, volatility] = [0.02, 0.3]
  const [, , , out] = await t.run(
    grid(n, 128),
    prices,
    strikes,
    years,
    new Float64Array(n),
    f64(rate),
    f64(volatility),
    n,
  )
  const expected = prices.map((price, i) => {
    const [strike, year] = [strikes[i] as number, years[i] as number]
    const root = volatility * Math.sqrt(year)
    const d1 = (Math.log(price / strike) + (rate + 0.5 * volatility * volatility) * year) / root
    return price * normal(d1) - strike * Math.exp(-rate * year) * normal(d1 - root)
  })
  t.near(out as Float64Array, expected, 64, 32)
})
add('hashTable', async (t) => {
  const n = t.size()
  const keys = t.array('u32', n, () => t.random.integer(0, 500))
  const size = 1024
  const [, table, counts] = await t.run(
    grid(n, 96),
    keys,
    new Uint32Array(size).fill(2 ** 32 - 1),
    new Uint32Array(size),
    u32(size - 1),
    n,
  )
  const found = new Map<number, number>()
  ;(table as Uint32Array).forEach((key, at) => {
    if (key !== 2 ** 32 - 1) found.set(key, (counts as Uint32Array)[at] as number)
  })
  const expected = new Map<number, number>()
  for (const key of keys) expected.set(key, (expected.get(key) ?? 0) + 1)
  const sorted = (map: Map<number, number>): number[] => [...map].sort(([a], [b]) => a - b).flat()
  t.same(sorted(found), sorted(expected))
})
add('breadthFirst', async (t) => {
  const n = t.size(200, 600)
  const starts = new Int32Array(n + 1)
  for (let i = 0; i < n; i += 1) starts[i + 1] = (starts[i] as number) + t.random.integer(0, 4)
  const edges = t.integers(starts[n] as number, 0, n - 1)
  const levels = t.buffer(new Int32Array(n).fill(-1).fill(0, 0, 1))
  const [from, to] = [t.buffer(starts), t.buffer(edges)]
  for (let level = 0; ; level += 1) {
    const [changed] = await t.run(grid(n, 64), from, to, levels, level, new Int32Array(1), n)
    if ((changed as Int32Array)[0] === 0) break
  }
  const expected = new Int32Array(n).fill(-1)
  expected[0] = 0
  const open = [0]
  for (const at of open) {
    for (let k = starts[at] as number; k < (starts[at + 1] as number); k += 1) {
      const next = edges[k] as number
      if (expected[next] !== -1) continue
      expected[next] = (expected[at] as number) + 1
      open.push(next)
    }
  }
  t.same((await levels.toArray()) as Int32Array, expected)
})
add('kMeans', async (t) => {
  const [n, clusters] = [t.size(), 7]
  const [points, centers] = [t.floats(n * 2, -1, 1), t.floats(clusters * 2, -1, 1)]
  const [, , nearest, sums] = await t.run(
    grid(n, 64),
    points,
    centers,
    new Int32Array(n),
    new Float32Array(clusters),
    clusters,
    n,
  )
  const counts = new Float32Array(clusters)
  const expected = Int32Array.from({ length: n }, (_, i) => {
    const squares = Array.from({ length: clusters }, (_, k) => {
      const dx = fround((points[2 * i] as number) - (centers[2 * k] as number))
      const dy = fround((points[2 * i + 1] as number) - (centers[2 * k + 1] as number))
      return fround(fround(dx * dx) + fround(dy * dy))
    })
    const best = squares.indexOf(Math.min(...squares))
    counts[best]! += 1
    return best
  })
  t.same(nearest as Int32Array, expected)
  t.same(sums as Float32Array, counts)
})
add('sha256', async (t) => {
  const n = t.size(50, 150)
  const data = t.array('u8', n * 16)
  const [, out] = await t.run(grid(n, 64), data, new Uint8Array(n * 32), n)
  const expected = Array.from({ length: n }, (_, i) => [
    ...createHash('sha256')
      .update(data.subarray(i * 16, i * 16 + 16))
      .digest(),
  ])
  t.same(out as Uint8Array, expected.flat())
})
add('monteCarlo', async (t) => {
  const [n, each] = [t.size(100, 300), 50]
  const states = t.array('u32', n, () => t.random.bits() | 1)
  const [after, inside] = await t.run(grid(n, 64), states, new BigUint64Array(1), each, n)
  let count = 0
  const expected = states.map((state) => {
    let x = state
    const next = (): number => {
      x ^= x << 13
      x ^= x >>> 17
      x ^= x << 5
      return x >>> 17
    }
    for (let k = 0; k < each; k += 1) {
      const [px, py] = [next(), next()]
      if (px * px + py * py < 2 ** 30) count += 1
    }
    return x
  })
  t.same(after as Uint32Array, expected)
  t.same(inside as BigUint64Array, [BigInt(count)])
})
add('longestCommon', async (t) => {
  const [blocks, length] = [3, t.size(20, 60)]
  const [x, y] = [
    t.array('u8', blocks * length, () => t.random.integer(0, 4)),
    t.array('u8', blocks * length, () => t.random.integer(0, 4)),
  ]
  const shape = { grid: blocks, block: 64, sharedMemory: 12 * (length + 1) }
  const [, , out] = await t.run(shape, x, y, new Int32Array(blocks), length)
  const expected = Array.from({ length: blocks }, (_, block) => {
    let row = new Array<number>(length + 1).fill(0)
    for (let r = 0; r < length; r += 1) {
      const next = [0]
      for (let c = 0; c < length; c += 1) {
        const isSame = x[block * length + r] === y[block * length + c]
        next.push(isSame ? (row[c] as number) + 1 : Math.max(row[c + 1] as number, next[c] as number))
      }
      row = next
    }
    return row[length] as number
  })
  t.same(out as Int32Array, expected)
})
