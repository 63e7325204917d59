import { defineStruct } from '@shoal/types'
import { casesOf } from '../corpus.js'
import { f32 } from '../trial.js'

const { add } = casesOf('memory')

const grid = (n: number, block: number) => ({ grid: Math.ceil(n / block), block })

add('copyVectors', async (t) => {
  const n = t.size()
  const data = t.floats(n * 4, -1, 1)
  const [, out] = await t.run(grid(n, 96), data, new Float32Array(n * 4), n)
  t.same(
    out as Float32Array,
    data.map((_, i) => data[(i & ~3) + 3 - (i & 3)] as number),
  )
})
add('copyPairs', async (t) => {
  const n = t.size()
  const data = t.array('i64', n * 2)
  const [, out] = await t.run(grid(n, 64), data, new Int16Array(n * 4), n)
  const part = (value: bigint, by: bigint): number => Number(BigInt.asIntN(16, value >> by))
  const expected = Array.from({ length: n }, (_, i) => {
    const [x, y] = [data[2 * i] as bigint, data[2 * i + 1] as bigint]
    return [part(x, 0n), part(x, 16n), part(y, 48n), part(y, 0n)]
  })
  t.same(out as Int16Array, expected.flat())
})
add('fromConstants', async (t) => {
  const n = t.size()
  const [data, table] = [t.array('u8', n), t.integers(256, -1000, 1000)]
  t.variable('table', 'i32').copyFrom(table)
  const scale = t.random.integer(1, 9) / 4
  t.variable('scale', 'f32').copyFrom(Float32Array.of(scale))
  const [, out] = await t.run(grid(n, 128), data, new Float32Array(n), n)
  t.same(
    out as Float32Array,
    Float32Array.from(data, (at) => (table[at] as number) * scale),
  )
})
add('moduleVariables', async (t) => {
  const n = t.size()
  const data = t.array('u32', n)
  const counters = t.variable('counters', 'u32')
  counters.copyFrom(new Uint32Array(8))
  await t.run(grid(n, 128), data, n)
  const expected = new Uint32Array(8)
  for (const value of data) expected[value & 7]! += [3, 5, 7, 11][(value >>> 8) & 3] as number
  t.same(await counters.toArray(), expected)
})
add('managedVariable', async (t) => {
  const n = t.size()
  const data = t.integers(n, 0, 1000)
  const total = t.variable('total', 'i32')
  const [before] = await total.toArray()
  await t.run(grid(n, 64), data, n)
  t.same(await total.toArray(), [data.reduce((sum, value) => sum + (value & 15), before as number)])
})
add('localArrays', async (t) => {
  const n = t.size()
  const data = t.array('u32', n)
  const [, out] = await t.run(grid(n, 64), data, new Uint32Array(n), n)
  const expected = data.map((value) => {
    const v = Uint32Array.from({ length: 20 }, (_, k) => Math.imul(k, value))
    let at = value % 20
    for (let k = 0; k < 10; k += 1) {
      v[at]! += (v[(at + 7) % 20] as number) + 1
      at = (v[at] as number) % 20
    }
    return (v[at] as number) ^ (v[19 - at] as number)
  })
  t.same(out as Uint32Array, expected)
})
add('reverseBlocks', async (t) => {
  const block = t.random.pick([33, 64, 97, 255])
  const data = t.array('i32', block * 7)
  const [, out] = await t.run({ grid: 7, block, sharedMemory: block * 4 }, data, new Int32Array(data.length))
  t.same(
    out as Int32Array,
    data.map((_, i) => data[i - (i % block) + block - 1 - (i % block)] as number),
  )
})
add('sharedParts', async (t) => {
  const block = t.random.pick([32, 63, 200])
  const data = t.integers(block * 5, -1000, 1000)
  const [, out] = await t.run({ grid: 5, block, sharedMemory: block * 12 }, data, new Float64Array(data.length))
  const expected = Float64Array.from(data, (_, i) => {
    const at = (offset: number): number =>
      data[i - (i % block) + (((((i % block) * 7 + 3) % block) + offset) % block)] as number
    return at(0) * 0.5 + at(1) * 3 + (at(2) & 255)
  })
  t.same(out as Float64Array, expected)
})
add('structures', async (t) => {
  const n = t.size()
  const data = new Uint8Array(n * 24)
  const view = new DataView(data.buffer)
  const expected = new Uint8Array(n * 24)
  const after = new DataView(expected.buffer)
  const step = 0.25
  for (let i = 0; i < n; i += 1) {
    for (let k = 0; k < 3; k += 1) {
      const value = Math.fround(t.random.real(-9, 9))
      view.setFloat32(i * 24 + 4 * k, value, true)
      after.setFloat32(i * 24 + 4 * k, value + step * (k + 1), true)
    }
    const [kind, mass] = [t.random.integer(-100, 100), t.random.real(0, 5)]
    view.setInt8(i * 24 + 12, kind)
    after.setInt8(i * 24 + 12, kind + 1)
    view.setFloat64(i * 24 + 16, mass, true)
    after.setFloat64(i * 24 + 16, mass * 2, true)
  }
  const [, out] = await t.run(grid(n, 96), data, new Uint8Array(n * 24), f32(step), n)
  // The padding between the members has no defined content.
  const members = (bytes: Uint8Array): Uint8Array => bytes.filter((_, at) => at % 24 < 13 || at % 24 >= 16)
  t.same(members(out as Uint8Array), members(expected))
})
const Limits = defineStruct('Limits', { low: 'i16', high: 'i16' })
const Settings = defineStruct('Settings', { offset: 'i32', factors: ['f64', 5], limits: Limits, flags: ['u8', 3] })
add('structParameter', async (t) => {
  const n = t.size()
  const data = t.integers(n, -500, 500)
  const value = {
    offset: t.random.integer(-50, 50),
    factors: Array.from({ length: 5 }, () => t.random.real(-2, 2)),
    limits: { low: -100, high: 120 },
    flags: [t.random.integer(0, 255), 3, t.random.integer(0, 9)],
  }
  const [, out] = await t.run(grid(n, 128), { type: Settings, value }, data, new Float64Array(n), n)
  const expected = Float64Array.from(data, (x) => {
    const v = x + value.offset
    const r = (value.factors[(v >>> 0) % 5] as number) * ((value.flags[(v >>> 0) % 3] as number) + 1)
    return v < -100 ? -r : v > 120 ? r + 1 : r
  })
  t.same(out as Float64Array, expected)
})
add('followNodes', async (t) => {
  const n = t.size(100, 300)
  const order = Int32Array.from({ length: n }, (_, i) => i)
  for (let i = n - 1; i > 0; i -= 1) {
    const other = t.random.integer(0, i)
    ;[order[i], order[other]] = [order[other] as number, order[i] as number]
  }
  const nodes = t.buffer(new Uint8Array(n * 16))
  await t.runNamed('linkNodes', grid(n, 64), nodes, order, n)
  const [out] = await t.run(grid(n, 64), nodes, new Int32Array(n), n)
  const expected = new Int32Array(n)
  order.forEach((node, at) => {
    for (let k = at; k < Math.min(n, at + 20); k += 1) expected[node]! += k * 3
  })
  t.same(out as Int32Array, expected)
})
add('genericAddresses', async (t) => {
  const n = t.size(200, 500)
  const data = t.integers(n, -100, 100)
  const [, out] = await t.run(grid(n, 64), data, new Int32Array(n), n)
  const at = (i: number): number => (i < n ? (data[i] as number) : 0)
  const expected = Int32Array.from({ length: n }, (_, i) => {
    const values = Array.from({ length: 8 }, (_, k) => {
      if (i % 3 === 0) return at(i - (i % 64) + ((i % 64) & 48) + k)
      return i % 3 === 1 ? at(i) + k * k : at(Math.floor(i / 8) + k)
    })
    return values.reduce((sum, value, k) => sum + value * (k + 1), 0) + [1000, 3000, 2000][i % 3]!
  })
  t.same(out as Int32Array, expected)
})
add('moveBytes', async (t) => {
  const n = t.size()
  const shift = t.random.integer(1, 99)
  const data = t.array('u8', n)
  const [, out] = await t.run(grid(n, 100), data, new Uint8Array(n), shift, n)
  t.same(
    out as Uint8Array,
    data.map((_, i) => (data[(i - (shift % n) + n) % n] as number) ^ shift),
  )
})
add('cacheHints', async (t) => {
  const n = t.size()
  const data = t.integers(n, -1000, 1000)
  const [, out] = await t.run(grid(n, 64), data, new Int32Array(n), n)
  const at = (i: number): number => data[i % n] as number
  t.same(
    out as Int32Array,
    data.map((_, i) => at(i) + at(i + 1) + at(i + 2) + at(i + 3)),
  )
})
add('gather3', async (t) => {
  const [width, height, depth] = [t.size(5, 11), t.size(5, 11), 3]
  const n = width * height * depth
  const data = t.array('f32', n, () => t.random.integer(-99, 99))
  const at = t.integers(n, 0, n - 1)
  const shape = { grid: [Math.ceil(width / 8), Math.ceil(height / 4), 2], block: [8, 4, 2] } as const
  const [, , out] = await t.run(shape, data, at, new Float32Array(n), width, height, depth)
  const expected = Float32Array.from(at, (from, i) => {
    const [x, y, z] = [i % width, Math.floor(i / width) % height, Math.floor(i / width / height)]
    return (data[from] as number) + x * 0.25 + y * 4 + z * 64
  })
  t.same(out as Float32Array, expected)
})
add('transpose', async (t) => {
  const [width, height] = [t.size(20, 60), t.size(20, 60)]
  const data = t.floats(width * height, -1, 1)
  const shape = { grid: [Math.ceil(width / 16), Math.ceil(height / 16)], block: [16, 16] } as const
  const [, out] = await t.run(shape, data, new Float32Array(data.length), width, height)
  t.same(
    out as Float32Array,
    data.map((_, i) => data[(i % height) * width + Math.floor(i / height)] as number),
  )
})
