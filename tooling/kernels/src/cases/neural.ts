import { casesOf } from '../corpus.js'
import { f32, u32 } from '../trial.js'

const { add } = casesOf('neural')

const { fround } = Math
const sumOf = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0)
const rowsOf = (data: Float32Array, columns: number): number[][] =>
  Array.from({ length: data.length / columns }, (_, row) => [...data.subarray(row * columns, (row + 1) * columns)])
const softmax = (row: readonly number[]): number[] => {
  const most = Math.max(...row)
  const weights = row.map((value) => Math.exp(value - most))
  return weights.map((weight) => weight / sumOf(weights))
}
/** Computes erf beyond single precision, by its series or the continued fraction of erfc. */
function erf(x: number): number {
  if (Math.abs(x) > 3) {
    let tail = 0
    for (let k = 60; k > 0; k -= 1) tail = k / 2 / (Math.abs(x) + tail)
    return Math.sign(x) * (1 - Math.exp(-x * x) / Math.sqrt(Math.PI) / (Math.abs(x) + tail))
  }
  let [sum, term] = [x, x]
  for (let k = 1; k < 80; k += 1) {
    term *= (-x * x) / k
    sum += term / (2 * k + 1)
  }
  return (2 / Math.sqrt(Math.PI)) * sum
}

// These kernels add hundreds of numbers in single precision, in another order than the reference, so errors accumulate.
add('softmax', async (t) => {
  const [rows, columns] = [11, t.size(100, 400)]
  const data = t.floats(rows * columns, -6, 6)
  const [, out] = await t.run({ grid: rows, block: 128 }, data, new Float32Array(data.length), columns)
  t.near(out as Float32Array, rowsOf(data, columns).flatMap(softmax), 16)
})
add('layerNorm', async (t) => {
  const [rows, columns] = [9, t.size(100, 400)]
  const [data, gain, bias] = [t.floats(rows * columns, -2, 3), t.floats(columns, 0.5, 2), t.floats(columns, -1, 1)]
  const [, , , out] = await t.run({ grid: rows, block: 128 }, data, gain, bias, new Float32Array(data.length), columns)
  const expected = rowsOf(data, columns).flatMap((row) => {
    const mean = sumOf(row) / columns
    const variance = sumOf(row.map((value) => (value - mean) ** 2)) / columns
    return row.map(
      (value, i) => ((value - mean) / Math.sqrt(variance + fround(1e-5))) * (gain[i] as number) + (bias[i] as number),
    )
  })
  t.near(out as Float32Array, expected, 16, 1)
})
add('rmsNorm', async (t) => {
  const [rows, columns] = [9, t.size(100, 400)]
  const data = t.floats(rows * columns, -2, 3)
  const [, out] = await t.run({ grid: rows, block: 128 }, data, new Float32Array(data.length), columns)
  const expected = rowsOf(data, columns).flatMap((row) => {
    const scale = 1 / Math.sqrt(sumOf(row.map((value) => value * value)) / columns + fround(1e-6))
    return row.map((value) => value * scale)
  })
  t.near(out as Float32Array, expected, 16)
})
add('gelu', async (t) => {
  const data = t.floats(t.size(), -5, 5)
  const [, out] = await t.run(
    { grid: Math.ceil(data.length / 96), block: 96 },
    data,
    new Float32Array(data.length),
    data.length,
  )
  t.near(
    out as Float32Array,
    [...data].map((x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2))),
    8,
    1,
  )
})
add('activations', async (t) => {
  const data = t.floats(t.size(), -9, 9)
  const [, out] = await t.run(
    { grid: Math.ceil(data.length / 64), block: 64 },
    data,
    new Float32Array(data.length * 3),
    data.length,
  )
  const expected = [...data].flatMap((x) => [Math.max(x, 0), 1 / (1 + Math.exp(-x)), x / (1 + Math.exp(-x))])
  t.near(out as Float32Array, expected, 5)
})
/** Causal attention in double precision. */
function attention(q: Float32Array, k: Float32Array, v: Float32Array, width: number): number[] {
  const [queries, keys, values] = [q, k, v].map((data) => rowsOf(data, width)) as [number[][], number[][], number[][]]
  return queries.flatMap((query, at) => {
    const scores = keys
      .slice(0, at + 1)
      .map((key) => sumOf(key.map((value, d) => value * (query[d] as number))) / Math.sqrt(width))
    const weights = softmax(scores)
    return query.map((_, d) => sumOf(weights.map((weight, key) => weight * (values[key]?.[d] as number))))
  })
}
add('attention', async (t) => {
  const [length, width] = [t.size(30, 70), t.size(16, 40)]
  const [q, k, v] = [t.floats(length * width, -1, 1), t.floats(length * width, -1, 1), t.floats(length * width, -1, 1)]
  const shape = { grid: length, block: 128, sharedMemory: length * 4 }
  const [, , , out] = await t.run(shape, q, k, v, new Float32Array(q.length), length, width)
  t.near(out as Float32Array, attention(q, k, v, width), 16, 1)
})
add('attentionOnline', async (t) => {
  const length = t.size(30, 90)
  const [q, k, v] = [t.floats(length * 8, -2, 2), t.floats(length * 8, -2, 2), t.floats(length * 8, -1, 1)]
  const [, , , out] = await t.run(
    { grid: Math.ceil(length / 32), block: 32 },
    q,
    k,
    v,
    new Float32Array(q.length),
    length,
  )
  t.near(out as Float32Array, attention(q, k, v, 8), 32, 1)
})
add('crossEntropy', async (t) => {
  const [rows, classes] = [15, t.size(50, 300)]
  const data = t.floats(rows * classes, -4, 4)
  const labels = t.integers(rows, 0, classes - 1)
  const [, , out] = await t.run({ grid: rows, block: 128 }, data, labels, new Float32Array(rows), classes)
  const expected = rowsOf(data, classes).map(
    (row, at) => Math.log(sumOf(row.map(Math.exp))) - (row[labels[at] as number] as number),
  )
  t.near(out as Float32Array, expected, 16, 4)
})
add('adam', async (t) => {
  const n = t.size()
  const arrays = [t.floats(n, -1, 1), t.floats(n, -1, 1), t.floats(n, -1, 1), t.floats(n, 0, 1)] as const
  const [rate, b1, b2] = [fround(0.01), fround(0.9), fround(0.999)]
  const [weights, , first, second] = await t.run(
    { grid: Math.ceil(n / 128), block: 128 },
    ...arrays,
    f32(rate),
    f32(b1),
    f32(b2),
    n,
  )
  const [w, g, m, v] = arrays
  const nextM = m.map((value, i) => fround(b1 * value) + fround(fround(1 - b1) * (g[i] as number)))
  const nextV = v.map(
    (value, i) => fround(b2 * value) + fround(fround(fround(1 - b2) * (g[i] as number)) * (g[i] as number)),
  )
  t.same(first as Float32Array, nextM)
  t.same(second as Float32Array, nextV)
  t.same(
    weights as Float32Array,
    w.map(
      (value, i) =>
        value -
        fround(fround(rate * (nextM[i] as number)) / fround(fround(Math.sqrt(nextV[i] as number)) + fround(1e-8))),
    ),
  )
})
add('convolution', async (t) => {
  const [channels, size, filters] = [3, t.size(9, 25), 4]
  const [data, weights] = [
    t.array('f32', channels * size * size, () => t.random.integer(-8, 8) / 8),
    t.array('f32', filters * channels * 9, () => t.random.integer(-8, 8) / 8),
  ]
  const reach = size - 2
  const shape = { grid: [reach, filters], block: 32 } as const
  const [, , out] = await t.run(
    shape,
    data,
    weights,
    new Float32Array(filters * reach * reach),
    channels,
    size,
    filters,
  )
  // The inputs are eighths, so every sum is exact.
  const expected = Float32Array.from({ length: filters * reach * reach }, (_, at) => {
    const [x, y, f] = [at % reach, Math.floor(at / reach) % reach, Math.floor(at / reach / reach)]
    let sum = 0
    for (let k = 0; k < channels * 9; k += 1) {
      const place = (Math.floor(k / 9) * size + y + Math.floor((k % 9) / 3)) * size + x + (k % 3)
      sum += (data[place] as number) * (weights[f * channels * 9 + k] as number)
    }
    return sum
  })
  t.same(out as Float32Array, expected)
})
add('maxPool', async (t) => {
  const [width, height] = [t.size(20, 60), t.size(20, 40)]
  const data = t.floats(width * height, -1, 1)
  const [w, h] = [width >> 1, height >> 1]
  const shape = { grid: [Math.ceil(w / 16), Math.ceil(h / 4)], block: [16, 4] } as const
  const [, out, where] = await t.run(shape, data, new Float32Array(w * h), new Int32Array(w * h), width, height)
  const expected = Int32Array.from({ length: w * h }, (_, at) => {
    const corner = 2 * Math.floor(at / w) * width + 2 * (at % w)
    return [1, width, width + 1].reduce(
      (best, step) => ((data[corner + step] as number) > (data[best] as number) ? corner + step : best),
      corner,
    )
  })
  t.same(where as Int32Array, expected)
  t.same(
    out as Float32Array,
    Float32Array.from(expected, (at) => data[at] as number),
  )
})
add('philox', async (t) => {
  const n = t.size()
  const keys = [t.random.bits(), t.random.bits()] as const
  const [out] = await t.run(
    { grid: Math.ceil(n / 128), block: 128 },
    new Uint32Array(n * 4),
    u32(keys[0]),
    u32(keys[1]),
    n,
  )
  const expected = Array.from({ length: n }, (_, i) => {
    let c = [BigInt(i), 0n, 0n, 0n] as [bigint, bigint, bigint, bigint]
    let [k0, k1] = [BigInt(keys[0]), BigInt(keys[1])]
    for (let round = 0; round < 10; round += 1) {
      const [x, y] = [0xd2511f53n * c[0], 0xcd9e8d57n * c[2]]
      c = [(y >> 32n) ^ c[1] ^ k0, y & 0xffffffffn, (x >> 32n) ^ c[3] ^ k1, x & 0xffffffffn]
      k0 = (k0 + 0x9e3779b9n) & 0xffffffffn
      k1 = (k1 + 0xbb67ae85n) & 0xffffffffn
    }
    return c.map(Number)
  })
  t.same(out as Uint32Array, expected.flat())
})
