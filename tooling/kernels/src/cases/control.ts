import { casesOf } from '../corpus.js'

const { add, each } = casesOf('control')

const { fround } = Math
const fibonacci = (k: number): number => (k < 2 ? k : fibonacci(k - 1) + fibonacci(k - 2))

each('collatz', ['i32'], 'i32', (a: number) => {
  let value = ((a >>> 0) % 10000) + 1
  let steps = 0
  for (; value !== 1; steps += 1) value = value % 2 === 1 ? 3 * value + 1 : value / 2
  return [steps]
})
each('greatestDivisor', ['u32', 'u32'], 'u32', (a: number, b: number) => {
  let [p, q] = [a, b]
  while (q !== 0) [p, q] = [q, p % q]
  return [p]
})
add('mandelbrot', async (t) => {
  const width = t.size(20, 40)
  const n = width * 15
  const [x0, y0, step] = [fround(-2.2), fround(-1.2), fround(0.07)]
  const expected = t.array('i32', n, (i) => {
    const cx = fround(x0 + fround((i % width) * step))
    const cy = fround(y0 + fround(Math.floor(i / width) * step))
    let [x, y, count] = [0, 0, 0]
    for (; count < 200 && fround(fround(x * x) + fround(y * y)) <= 4; count += 1) {
      const next = fround(fround(fround(x * x) - fround(y * y)) + cx)
      y = fround(fround(fround(2 * x) * y) + cy)
      x = next
    }
    return count
  })
  const real = (value: number) => ({ type: 'f32', value }) as const
  const [out] = await t.run(
    { grid: Math.ceil(n / 96), block: 96 },
    real(x0),
    real(y0),
    real(step),
    width,
    new Int32Array(n),
    n,
  )
  t.same(out as Int32Array, expected)
})
each('switched', ['i32', 'i32'], 'i32', (a: number, b: number) => {
  let v = b & 0xffff
  switch (a & 15) {
    case 0:
      return [v + 7]
    case 1:
      return [v * 3]
    case 2:
      return [(v ^ 0x55) - 9]
    case 3:
      return [v - 9]
    case 4:
      return [(v << 2) | 1]
    case 5:
      return [~v]
    case 6:
      return [v % 11]
    case 7:
      return [Math.imul(v, v) & 0xfff]
    case 9:
      return [v >> 3]
    case 12:
      return [0 - v]
    case 13:
      for (let k = 0; k < 5; k += 1) v += (k * v) & 15
      return [v]
    default:
      return [1]
  }
})
each('nested', ['i32'], 'i32', (a: number) => {
  let found = 0
  const most = (a & 63) + 2
  for (let p = 2; p < most && p !== 41; p += 1) {
    let isPrime = true
    for (let q = 2; q * q <= p; q += 1) if (p % q === 0) isPrime = false
    if (isPrime) found += p
  }
  return [found]
})
each('recursive', ['i32'], 'i32', (a: number) => [fibonacci(a & 7)], { count: 333 })
// The Ackermann function: A(2, n) = 2n + 3.
each('deepRecursion', ['i32'], 'i32', (a: number) => [2 * (a & 3) + 3], { count: 99 })
each('mutualRecursion', ['u32'], 'i32', (a: number) => [(a & 1) === 0 ? 1 : 2])
each('functionPointers', ['i32', 'i32'], 'i32', (a: number, b: number) => {
  const functions = [(v: number) => 2 * v, (v: number) => v * v, (v: number) => 0 - v] as const
  const by = functions[((a >>> 0) % 3) as 0]
  return [by(b & 0x7fff), ((a & 1) === 1 ? functions[0] : functions[2])(b & 0xffff) + functions[1](a & 255)]
})
add('virtualCalls', async (t) => {
  const n = t.size()
  const [x, y] = [t.floats(n, -10, 10), t.floats(n, -10, 10)]
  const [, , out] = await t.run({ grid: Math.ceil(n / 64), block: 64 }, x, y, new Float32Array(n), n)
  t.same(
    out as Float32Array,
    x.map((a, i) => (i % 3 === 0 ? a * (y[i] as number) : a * a)),
  )
})
add('sortsOfThreads', async (t) => {
  const n = t.size(50, 150)
  const data = t.integers(n * 16, -100, 100)
  const [, out] = await t.run({ grid: Math.ceil(n / 32), block: 32 }, data, new Int32Array(n * 16), n)
  const expected = Array.from({ length: n }, (_, i) => [...data.subarray(i * 16, i * 16 + 16)].sort((a, b) => a - b))
  t.same(out as Int32Array, expected.flat())
})
each('stateMachine', ['u32'], 'i32', (a: number) => {
  let words = 0
  let isInside = false
  for (let v = a; v !== 0; ) {
    const isLetter = (v & 3) !== 0
    if (isLetter && !isInside) words += 1
    isInside = isLetter
    v >>>= 2
  }
  return [words]
})
add('editDistance', async (t) => {
  const n = t.size(100, 300)
  const [x, y] = [
    t.array('i8', n * 12, () => t.random.integer(97, 100)),
    t.array('i8', n * 12, () => t.random.integer(97, 100)),
  ]
  const [, , out] = await t.run({ grid: Math.ceil(n / 64), block: 64 }, x, y, new Int32Array(n), n)
  const expected = t.array('i32', n, (i) => {
    let row = Array.from({ length: 13 }, (_, k) => k)
    for (let r = 1; r <= 12; r += 1) {
      const next = [r]
      for (let c = 1; c <= 12; c += 1) {
        const cost = (row[c - 1] as number) + (x[i * 12 + r - 1] === y[i * 12 + c - 1] ? 0 : 1)
        next.push(Math.min((row[c] as number) + 1, (next[c - 1] as number) + 1, cost))
      }
      row = next
    }
    return row[12] as number
  })
  t.same(out as Int32Array, expected)
})
