import { casesOf } from '../corpus.js'

const { add } = casesOf('cxx')

const grid = (n: number, block: number) => ({ grid: Math.ceil(n / block), block })

for (const size of [32, 96]) {
  add(`_Z8reversedILi${size}EEvPKsPs`, async (t) => {
    const data = t.array('i16', size * 5)
    const [, out] = await t.run({ grid: 5, block: size }, data, new Int16Array(data.length))
    t.same(
      out as Int16Array,
      data.map((_, i) => data[i - (i % size) + size - 1 - (i % size)] as number),
    )
  })
}
add('lambdas', async (t) => {
  const data = t.array('i32', t.size())
  const offset = t.random.integer(-99, 99)
  const [, out] = await t.run({ grid: 3, block: 96 }, data, new Int32Array(data.length), offset, data.length)
  const expected = data.map((v) => {
    let x = v & 0xffff
    for (let left = v & 3; left > 0; left -= 1) x = x * 3 + 1
    return x + offset
  })
  t.same(out as Int32Array, expected)
})
add('folds', async (t) => {
  const data = t.array('i32', t.size())
  const [, out] = await t.run(grid(data.length, 64), data, new Int32Array(data.length), data.length)
  t.same(
    out as Int32Array,
    data.map((v, i) => ((v & 255) + i + 3) * 3 + ((v & 15) + (i & 7)) * 2 + 1),
  )
})
add('curious', async (t) => {
  const data = t.array('i32', t.size())
  const [, out] = await t.run(grid(data.length, 64), data, new Int32Array(data.length), data.length)
  t.same(
    out as Int32Array,
    data.map((v, i) => ((v & 0xffff) * 2 + 1) ^ (i - (v & 0xffff) + 1)),
  )
})
add('computedTable', async (t) => {
  const data = t.array('u32', t.size())
  const [, out] = await t.run(grid(data.length, 64), data, new Int32Array(data.length), data.length)
  const powers = [1]
  for (let k = 1; k < 32; k += 1) powers.push(((powers[k - 1] as number) * 3) % 1009)
  t.same(
    out as Int32Array,
    Int32Array.from(data, (v) => (powers[v & 31] as number) + (powers[(v >>> 5) & 31] as number)),
  )
})
add('fourier', async (t) => {
  const blocks = 3
  const data = t.doubles(blocks * 128, -1, 1)
  const factors = Float64Array.from({ length: 64 }, (_, i) =>
    i % 2 === 0 ? Math.cos((Math.PI * (i >> 1)) / 32) : -Math.sin((Math.PI * (i >> 1)) / 32),
  )
  const [, , out] = await t.run({ grid: blocks, block: 32 }, data, factors, new Float64Array(data.length))
  const expected = new Float64Array(data.length)
  for (let block = 0; block < blocks; block += 1) {
    for (let k = 0; k < 64; k += 1) {
      for (let j = 0; j < 64; j += 1) {
        const angle = (-2 * Math.PI * ((j * k) % 64)) / 64
        const [re, im] = [data[block * 128 + 2 * j] as number, data[block * 128 + 2 * j + 1] as number]
        expected[block * 128 + 2 * k]! += re * Math.cos(angle) - im * Math.sin(angle)
        expected[block * 128 + 2 * k + 1]! += re * Math.sin(angle) + im * Math.cos(angle)
      }
    }
  }
  // The plain sum of 64 products is less precise than the kernel's result.
  t.near(out as Float64Array, expected, 32, 16)
})
