import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { corpusFile } from './support/corpus.js'

// The software device runs the compiler's PTX of packages/sim/test/ptx/matrices.cu. All numbers are small integers, so
// that sums do not depend on their order.
Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { Device, DeviceBuffer, Module } = await import('@shoal/driver')

let device: import('@shoal/driver').Device
let module: import('@shoal/driver').Module

beforeAll(() => {
  device = Device.get(0)
  module = Module.loadSync(device, readFileSync(corpusFile('matrices.ptx'), 'utf8'))
})

/** Returns integers from -8 to 8. */
const integers = (count: number, seed: number): Int8Array =>
  Int8Array.from({ length: count }, (_, index) => ((((index + seed) * 2654435761) % 1000003) % 17) - 8)

/** Returns the bits of an f16. */
function half(value: number): number {
  if (value === 0) return 0
  const exponent = Math.floor(Math.log2(Math.abs(value)))
  const fraction = Math.abs(value) / 2 ** exponent - 1
  return (value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | (fraction * 1024)
}
const halves = (values: ArrayLike<number>): Uint16Array => Uint16Array.from(values, half)
/** Returns the bits of bf16: the upper half of an f32. */
const bf16Array = (values: ArrayLike<number>): Uint16Array =>
  new Uint16Array(Float32Array.from(values).buffer).filter((_, index) => index % 2 === 1)

interface Shape {
  m: number
  n: number
  k: number
}

/** Returns the product of A, at(i, l), and B, at(l, j), row by row. */
function product(
  { m, n, k }: Shape,
  a: (i: number, l: number) => number,
  b: (l: number, j: number) => number,
): number[] {
  return Array.from({ length: m * n }, (_, index) => {
    let sum = 0
    for (let l = 0; l < k; l += 1) sum += a(Math.floor(index / n), l) * b(l, index % n)
    return sum
  })
}
const rows = (data: Int8Array, columns: number) => (row: number, column: number) =>
  data[row * columns + column] as number
const columns = (data: Int8Array, rowCount: number) => (row: number, column: number) =>
  data[column * rowCount + row] as number

type Data = Float32Array | Float64Array | Int32Array | Int8Array | Uint16Array

async function run(
  name: string,
  grid: readonly [number, number],
  block: number,
  data: readonly Data[],
  numbers: number[] = [],
) {
  const buffers = data.map((each) => DeviceBuffer.from(device, each))
  const kinds = [...data.map(() => 'ptr' as const), ...numbers.map(() => 'i32' as const)]
  module.kernel(name, kinds).launch({ grid: [...grid], block }, ...buffers, ...numbers)
  const result = await (buffers[2] as (typeof buffers)[number]).toArray()
  for (const each of buffers) each.dispose()
  return [...result] as number[]
}

describe('matrix products on the software device', () => {
  test('of f16, in tiles, by mma', async () => {
    const shape = { m: 128, n: 192, k: 80 }
    const a = integers(shape.m * shape.k, 1)
    const b = integers(shape.k * shape.n, 2)
    const c = new Float32Array(shape.m * shape.n)
    const got = await run('matmul', [shape.n / 64, shape.m / 64], 128, [halves(a), halves(b), c], [shape.n, shape.k])
    expect(got).toEqual(product(shape, rows(a, shape.k), rows(b, shape.n)))
  })

  test('of f16, by wmma, with modified factors and sums', async () => {
    const shape = { m: 16, n: 16, k: 48 }
    const [a, b] = [integers(16 * 48, 3), integers(16 * 48, 4)]
    const got = await run('halves', [1, 1], 32, [halves(a), halves(b), new Float32Array(256)], [48])
    expect(got).toEqual(product(shape, rows(a, 48), columns(b, 48)).map((x) => x + 0.5))
  })

  test('of f16 with sums of f16, A in columns in shared memory', async () => {
    const shape = { m: 32, n: 8, k: 16 }
    const [a, b] = [integers(32 * 16, 5), integers(16 * 8, 6)]
    const got = await run('tall', [1, 1], 32, [halves(a), halves(b), new Uint16Array(256)])
    expect(got).toEqual([...halves(product(shape, columns(a, 32), rows(b, 8)).map((x) => x + 1))])
  })

  test('of bf16, written in columns', async () => {
    const shape = { m: 8, n: 32, k: 16 }
    const [a, b] = [integers(8 * 16, 7), integers(32 * 16, 8)]
    const got = await run('wide', [1, 1], 32, [bf16Array(a), bf16Array(b), new Float32Array(256)])
    const want = product(shape, rows(a, 16), columns(b, 16))
    expect(got).toEqual(want.map((_, index) => want[(index % 8) * 32 + Math.floor(index / 8)]))
  })

  test('of tf32, added to the previous values', async () => {
    const shape = { m: 16, n: 16, k: 8 }
    const [a, b, c] = [integers(128, 9), integers(128, 10), integers(256, 11)]
    const got = await run('tensorFloats', [1, 1], 32, [
      Float32Array.from(a),
      Float32Array.from(b),
      Float32Array.from(c),
    ])
    expect(got).toEqual(product(shape, rows(a, 8), rows(b, 16)).map((x, index) => x + (c[index] as number)))
  })

  test('of bytes, and of f64', async () => {
    const [a, b] = [integers(256, 12), integers(256, 13)]
    const got = await run('bytes', [1, 1], 32, [a, b, new Int32Array(256)])
    expect(got).toEqual(product({ m: 16, n: 16, k: 16 }, rows(a, 16), columns(b, 16)).map((x) => x + 3))
    const sums = await run('doubles', [1, 1], 32, [
      Float64Array.from(a.subarray(0, 32)),
      Float64Array.from(b.subarray(0, 32)),
      new Float64Array(64),
    ])
    expect(sums).toEqual(product({ m: 8, n: 8, k: 4 }, rows(a, 4), columns(b, 4)).map((x) => x + 0.5))
  })
})
