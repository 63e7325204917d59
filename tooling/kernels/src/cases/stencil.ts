import { casesOf } from '../corpus.js'
import { fma32 } from '../real.js'

const { add } = casesOf('stencil')

const { fround } = Math
const clamp = (value: number, most: number): number => Math.min(Math.max(value, 0), most)
const plane = (width: number, height: number, x: number, y: number) =>
  ({ grid: [Math.ceil(width / x), Math.ceil(height / y)], block: [x, y] }) as const

add('line', async (t) => {
  const data = t.floats(t.size(), -1, 1)
  const n = data.length
  const [, out] = await t.run({ grid: Math.ceil(n / 128), block: 128 }, data, new Float32Array(n), n)
  const expected = data.map((_, i) => {
    let sum = 0
    for (let k = 0; k < 7; k += 1) sum = fround(sum + fround((data[i + k - 3] ?? 0) * (0.125 * (k + 1))))
    return sum
  })
  t.same(out as Float32Array, expected)
})
add('fivePoints', async (t) => {
  const [width, height] = [t.size(30, 80), t.size(10, 40)]
  const data = t.floats(width * height, -1, 1)
  const [, out] = await t.run(plane(width, height, 32, 8), data, new Float32Array(data.length), width, height)
  const expected = data.map((value, i) => {
    const [x, y] = [i % width, Math.floor(i / width)]
    const at = (dx: number, dy: number): number =>
      data[clamp(y + dy, height - 1) * width + clamp(x + dx, width - 1)] as number
    const around = fround(fround(fround(at(0, -1) + at(0, 1)) + at(-1, 0)) + at(1, 0))
    return fround(0.5 * value) + fround(0.125 * around)
  })
  t.same(out as Float32Array, expected)
})
add('sevenPoints', async (t) => {
  const [nx, ny, nz] = [t.size(8, 20), t.size(8, 20), t.size(5, 9)]
  const data = t.doubles(nx * ny * nz, -1, 1)
  const [, out] = await t.run(plane(nx, ny, 16, 4), data, new Float64Array(data.length), nx, ny, nz)
  const expected = data.map((value, i) => {
    const [x, y, z] = [i % nx, Math.floor(i / nx) % ny, Math.floor(i / nx / ny)]
    if (x === 0 || y === 0 || z === 0 || x === nx - 1 || y === ny - 1 || z === nz - 1) return value
    const at = (step: number): number => data[i + step] as number
    return at(-1) + at(1) + at(-nx) + at(nx) + at(-nx * ny) + at(nx * ny) - 6 * value
  })
  t.same(out as Float64Array, expected)
})
add('convolve', async (t) => {
  const [width, height] = [t.size(20, 50), t.size(20, 40)]
  const [data, filter] = [t.floats(width * height, -1, 1), t.floats(25, -1, 1)]
  t.variable('filter', 'f32').copyFrom(filter)
  const [, out] = await t.run(plane(width, height, 16, 8), data, new Float32Array(data.length), width, height)
  const expected = data.map((_, i) => {
    let sum = 0
    for (let k = 0; k < 25; k += 1) {
      const [x, y] = [(i % width) + (k % 5) - 2, Math.floor(i / width) + Math.floor(k / 5) - 2]
      if (x >= 0 && y >= 0 && x < width && y < height)
        sum = fma32(data[y * width + x] as number, filter[k] as number, sum)
    }
    return sum
  })
  t.same(out as Float32Array, expected)
})
add('life', async (t) => {
  const [width, height] = [t.size(20, 50), t.size(20, 40)]
  const data = t.array('u8', width * height, () => t.random.integer(0, 1))
  const [, out] = await t.run(
    { grid: Math.ceil(data.length / 128), block: 128 },
    data,
    new Uint8Array(data.length),
    width,
    height,
  )
  const expected = data.map((value, i) => {
    let alive = -value
    for (let k = 0; k < 9; k += 1) {
      const y = (Math.floor(i / width) + Math.floor(k / 3) - 1 + height) % height
      alive += data[y * width + (((i % width) + (k % 3) - 1 + width) % width)] as number
    }
    return alive === 3 || (alive === 2 && value === 1) ? 1 : 0
  })
  t.same(out as Uint8Array, expected)
})
add('jacobi', async (t) => {
  const rounds = t.size(3, 9)
  const data = t.floats(324 * 3, 0, 1)
  const [, out] = await t.run({ grid: 3, block: [16, 16] }, data, new Float32Array(data.length), rounds)
  let now = data
  for (let round = 0; round < rounds; round += 1) {
    now = now.map((value, i) => {
      const [x, y] = [i % 18, Math.floor((i % 324) / 18)]
      if (x === 0 || y === 0 || x === 17 || y === 17) return value
      const at = (step: number): number => now[i + step] as number
      return fround(fround(at(-18) + at(18)) + fround(at(-1) + at(1))) * 0.25
    })
  }
  t.same(out as Float32Array, now)
})
add('median', async (t) => {
  const [width, height] = [t.size(20, 50), t.size(10, 30)]
  const data = t.array('u8', width * height)
  const [, out] = await t.run(plane(width, height, 32, 4), data, new Uint8Array(data.length), width, height)
  const expected = data.map((_, i) => {
    const around = Uint8Array.from({ length: 9 }, (_, k) => {
      const y = clamp(Math.floor(i / width) + Math.floor(k / 3) - 1, height - 1)
      return data[y * width + clamp((i % width) + (k % 3) - 1, width - 1)] as number
    })
    return around.sort()[4] as number
  })
  t.same(out as Uint8Array, expected)
})
add('boxBlur', async (t) => {
  const [width, height, radius] = [t.size(50, 150), t.size(10, 30), t.random.integer(1, 12)]
  const data = t.integers(width * height, -100, 100)
  const [, out] = await t.run(
    { grid: Math.ceil(width / 64), block: 64 },
    data,
    new Int32Array(data.length),
    width,
    height,
    radius,
  )
  const expected = data.map((_, i) => {
    let sum = 0
    const y = Math.floor(i / width)
    for (let row = Math.max(0, y - radius); row <= Math.min(height - 1, y + radius); row += 1)
      sum += data[row * width + (i % width)] as number
    return sum
  })
  t.same(out as Int32Array, expected)
})
