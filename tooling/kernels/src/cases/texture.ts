import { CudaArray, MipmappedArray, SurfaceObject, TextureObject, type TextureOptions } from '@shoal/driver/texture'
import { casesOf } from '../corpus.js'
import { type Argument, f32, type Trial } from '../trial.js'

const { add } = casesOf('texture')
const { fround, floor } = Math

const texture = (t: Trial, ...made: Parameters<typeof TextureObject.create>): Argument => ({
  type: 'texture',
  value: t.own(TextureObject.create(...made)),
})
const surface = (t: Trial, array: CudaArray): Argument => ({
  type: 'surface',
  value: t.own(SurfaceObject.create(array)),
})
const array = (t: Trial, options: Parameters<typeof CudaArray.create>[1]): CudaArray =>
  t.own(CudaArray.create(t.device, options))
const plane = (width: number, height: number) =>
  ({ grid: [Math.ceil(width / 16), Math.ceil(height / 8)], block: [16, 8] }) as const
const clamp = (index: number, size: number): number => Math.min(Math.max(index, 0), size - 1)
const repeat = (index: number, size: number): number => ((index % size) + size) % size

/** Returns the texel before a coordinate, and the distance to the next one in steps of 1/256. */
function around(at: number): [first: number, fraction: number] {
  const fixed = floor((at - 0.5) * 256 + 0.5)
  return [fixed >> 8, (fixed & 255) / 256]
}

/** Compares filtered values, in units of 1/256 of their range. The hardware's weights and products have only 8 bits. */
const filtered = (t: Trial, found: ArrayLike<number>, expected: ArrayLike<number>, range: number): void => {
  t.allowed = 3
  for (let index = 0; index < expected.length; index += 1) {
    const [is, wanted] = [found[index] as number, expected[index] as number]
    const off = (Math.abs(is - wanted) / range) * 256
    if (!(off <= t.allowed)) throw new Error(`result[${index}] is ${is}, not ${wanted}`)
    t.worst = Math.max(t.worst, off)
  }
  t.compared += expected.length
}

add('turned', async (t) => {
  const [width, height] = [16, 8]
  const data = t.floats(width * height, 0, 100)
  const picture = array(t, { width, height, format: 'f32' }).copyFromSync(data)
  const options: TextureOptions = { addressMode: 'wrap', filterMode: 'linear', normalizedCoordinates: true }
  // The picture turns by a right angle, so every coordinate is a multiple of 1/256 of a texel.
  const argument = texture(t, picture, options)
  const empty = new Float32Array(data.length)
  const [out] = await t.run(plane(width, height), argument, empty, width, height, f32(0), f32(1))
  const expected = data.map((_, i) => {
    const [u, v] = [(i % width) / width - 0.5, floor(i / width) / height - 0.5]
    const [[x, a], [y, b]] = [around((0.5 - v) * width), around((u + 0.5) * height)]
    const at = (dx: number, dy: number): number =>
      data[repeat(y + dy, height) * width + repeat(x + dx, width)] as number
    return (1 - b) * ((1 - a) * at(0, 0) + a * at(1, 0)) + b * ((1 - a) * at(0, 1) + a * at(1, 1))
  })
  filtered(t, out as Float32Array, expected, 100)
})
add('layered', async (t) => {
  const [width, height, layers] = [t.size(10, 40), t.size(10, 30), 5]
  const data = t.floats(width * height * layers, -10, 10)
  const pictures = array(t, { width, height, layers, format: 'f32' }).copyFromSync(data)
  const options: TextureOptions = { addressMode: 'wrap', filterMode: 'linear', normalizedCoordinates: true }
  const argument = texture(t, pictures, options)
  const size = width * height
  for (let layer = 0; layer < layers; layer += 1) {
    const [out] = await t.run(plane(width, height), argument, new Float32Array(data.length), width, height, layer)
    const own = (out as Float32Array).subarray(layer * size, (layer + 1) * size)
    filtered(
      t,
      own,
      Array.from(data.subarray(layer * size, (layer + 1) * size), (value) => layer - value),
      20,
    )
  }
})
add('lines', async (t) => {
  const [width, layers] = [t.size(10, 60), 4]
  const data = t.floats(width * layers, 0, 10)
  const lines = array(t, { width, layers, format: 'f32' }).copyFromSync(data)
  const shape = { grid: Math.ceil(data.length / 64), block: 64 }
  const argument = texture(t, lines, { filterMode: 'linear' })
  const [out] = await t.run(shape, argument, new Float32Array(data.length), width, layers)
  const expected = data.map((value, i) => {
    const next = (i % width) + 1 < width ? (data[i + 1] as number) : value
    return 0.75 * value + 0.25 * next
  })
  filtered(t, out as Float32Array, expected, 10)
})
add('volume', async (t) => {
  const n = 8
  const data = t.array('u8', n ** 3, () => t.random.integer(0, 255))
  const volume = array(t, { width: n, height: n, depth: n, format: 'u8' }).copyFromSync(data)
  const argument = texture(t, volume, {
    addressMode: ['clamp', 'wrap', 'mirror'],
    filterMode: 'linear',
    readMode: 'normalizedFloat',
    normalizedCoordinates: true,
  })
  const z = -0.125
  const [out] = await t.run(plane(n, n), argument, new Float32Array(n * n), n, f32(z))
  // -0.125 is mirrored to 0.125, the middle between two slices.
  const at = (x: number, y: number, slice: number): number => (data[(slice * n + y) * n + clamp(x, n)] as number) / 255
  const expected = Float32Array.from({ length: n * n }, (_, i) => {
    const [x, y] = [i % n, floor(i / n)]
    const row = (slice: number): number => 0.25 * at(x - 1, y, slice) + 0.75 * at(x, y, slice)
    return (row(0) + row(1)) / 2
  })
  filtered(t, out as Float32Array, expected, 1)
})
add('cube', async (t) => {
  const n = 8
  const data = t.floats(6 * n * n, 0, 100)
  const cube = array(t, { width: n, cubemap: true, format: 'f32' }).copyFromSync(data)
  const argument = texture(t, cube, { normalizedCoordinates: true })
  const [out] = await t.run(plane(n, n), argument, new Float32Array(data.length), n)
  t.same(out as Float32Array, data)
})
add('cubes', async (t) => {
  const [n, layers] = [4, 3]
  const data = t.floats(6 * n * n * layers, 0, 100)
  const cubes = array(t, { width: n, cubemap: true, layers, format: 'f32' }).copyFromSync(data)
  const argument = texture(t, cubes, { normalizedCoordinates: true })
  const [out] = await t.run({ grid: 1, block: 32 }, argument, new Float32Array(layers), layers)
  // The direction is backwards: the sixth face, at (0.25, 0.375).
  const expected = Float32Array.from(
    { length: layers },
    (_, layer) => data[((layer * 6 + 5) * n + 1) * n + 1] as number,
  )
  t.same(out as Float32Array, expected)
})
add('fetched', async (t) => {
  const n = t.size(100, 400)
  const data = t.floats(4 * n, -5, 5)
  const list = t.buffer(data)
  const argument = texture(t, { memory: list as never, channels: 4 })
  const [out] = await t.run({ grid: Math.ceil((n + 4) / 64), block: 64 }, argument, new Float32Array(n + 4), n + 4)
  const expected = Float32Array.from({ length: n + 4 }, (_, i) => {
    const part = (at: number): number => data[(i - 2) * 4 + at] ?? 0
    return fround(fround(part(0) + part(1)) + fround(part(2) + part(3)))
  })
  t.same(out as Float32Array, expected)
})
add('shifted', async (t) => {
  const [width, height, pitch] = [t.size(20, 60), t.size(10, 40), 512]
  const data = t.array('u32', (pitch / 4) * height)
  const memory = t.buffer(data)
  const argument = texture(t, { memory: memory as never, width, height, pitch }, { addressMode: ['clamp', 'border'] })
  const [out] = await t.run(plane(width, height), argument, new Uint32Array(width * height), width, height)
  const expected = Uint32Array.from({ length: width * height }, (_, i) => {
    const [x, y] = [clamp((i % width) + 3, width), floor(i / width) - 2]
    return y < 0 ? 0 : (data[(y * pitch) / 4 + x] as number)
  })
  t.same(out as Uint32Array, expected)
})
add('halves', async (t) => {
  const [width, height] = [t.size(10, 30), t.size(10, 30)]
  const data = t.array('u8', width * height * 4, () => t.random.integer(0, 255))
  const colours = array(t, { width, height, format: 'u8', channels: 4 }).copyFromSync(data)
  const argument = texture(t, colours, { filterMode: 'linear', readMode: 'normalizedFloat' })
  const [out] = await t.run(plane(width, height), argument, new Float32Array(data.length), width, height)
  const expected = Float32Array.from({ length: data.length }, (_, i) => {
    const [x, y, part] = [floor(i / 4) % width, floor(i / 4 / width), i % 4]
    let sum = 0
    for (let k = 0; k < 4; k += 1) {
      sum += data[(clamp(y + (k >> 1), height) * width + clamp(x + (k & 1), width)) * 4 + part] as number
    }
    return sum / 4 / 255
  })
  filtered(t, out as Float32Array, expected, 1)
})
add('gathered', async (t) => {
  const [width, height] = [t.size(10, 30), t.size(10, 30)]
  const data = t.floats(width * height * 2, 0, 10)
  const colours = array(t, { width, height, format: 'f32', channels: 2, gather: true }).copyFromSync(data)
  const argument = texture(t, colours)
  const [out] = await t.run(plane(width, height), argument, new Float32Array(width * height * 4), width, height)
  const expected = Float32Array.from({ length: width * height * 4 }, (_, i) => {
    const [x, y] = [floor(i / 4) % width, floor(i / 4 / width)]
    const [dx, dy] = [[0, 1, 1, 0][i % 4] as number, [1, 1, 0, 0][i % 4] as number]
    return data[(clamp(y + dy, height) * width + clamp(x + dx, width)) * 2 + 1] as number
  })
  t.same(out as Float32Array, expected)
})
add('levels', async (t) => {
  const pictures = t.own(MipmappedArray.create(t.device, { width: 16, height: 16, format: 'f32' }))
  for (let level = 0; level < pictures.levels; level += 1) {
    pictures.level(level).copyFromSync(new Float32Array((16 >> level) ** 2).fill(level * level))
  }
  const argument = texture(t, pictures, { mipmapFilterMode: 'linear', normalizedCoordinates: true })
  const [out] = await t.run({ grid: 1, block: 32 }, argument, new Float32Array(10), 5)
  const blended = (level: number): number => {
    const [first, part] = [floor(level), level - floor(level)]
    return (1 - part) * first ** 2 + part * (first + 1) ** 2
  }
  // The level is the logarithm of the coordinate's step, in texels of the first level.
  const expected = Float32Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? blended(i / 8) : ((i - 1) / 2) ** 2))
  filtered(t, out as Float32Array, expected, 16)
})
add('asked', async (t) => {
  const [width, height] = [t.size(10, 30), t.size(10, 30)]
  const made = array(t, { width, height, format: 'i32', surface: true })
  const [out] = await t.run({ grid: 1, block: 1 }, texture(t, made), surface(t, made), new Int32Array(4))
  t.same(out as Int32Array, [width, height, width, height])
})
add('drawn', async (t) => {
  const [width, height] = [t.size(10, 40), t.size(10, 40)]
  const data = t.floats(width * height, 0, 10)
  const to = array(t, { width, height, format: 'f32', surface: true }).copyFromSync(new Float32Array(data.length))
  await t.run(plane(width + 2, height + 2), surface(t, to), data, width, height)
  t.same((await to.toArray()) as Float32Array, data)
})
add('taken', async (t) => {
  const [width, height] = [t.size(10, 40), t.size(10, 40)]
  const data = t.floats(width * height, 0, 10)
  const from = array(t, { width, height, format: 'f32', surface: true }).copyFromSync(data)
  const [out] = await t.run(plane(width, height), surface(t, from), new Float32Array(data.length * 2), width, height)
  const expected = Float32Array.from({ length: data.length * 2 }, (_, i) => {
    const [x, y] = [(floor(i / 2) % width) - 1, floor(i / 2 / width) + 1]
    if (i % 2 === 1) return data[clamp(y, height) * width + clamp(x, width)] as number
    return x < 0 || y >= height ? 0 : (data[y * width + x] as number)
  })
  t.same(out as Float32Array, expected)
})
add('counted', async (t) => {
  const bins = 37
  const data = t.integers(t.size(500, 900), -3, bins + 3)
  const counts = array(t, { width: bins, format: 'u32', surface: true }).copyFromSync(new Uint32Array(bins))
  await t.run({ grid: Math.ceil(data.length / 64), block: 64 }, surface(t, counts), data, data.length)
  const expected = Array.from({ length: bins }, (_, bin) => data.filter((value) => value === bin).length)
  t.same((await counts.toArray()) as Uint32Array, expected)
})
add('slices', async (t) => {
  const n = 7
  const data = t.array('i16', n ** 3 * 2, () => t.random.integer(-1000, 1000))
  const volume = array(t, { width: n, height: n, depth: n, format: 'i16', channels: 2, surface: true }).copyFromSync(
    data,
  )
  const [out] = await t.run(plane(n, n), surface(t, volume), new Int16Array(data.length), n)
  t.same(out as Int16Array, data)
  t.same(
    (await volume.toArray()) as Int16Array,
    data.map((value, i) => (i % 2 === 0 ? -value : value)),
  )
})
add('sheets', async (t) => {
  const [n, layers] = [9, 4]
  const data = t.array('u8', n * n * layers)
  const sheets = array(t, { width: n, height: n, layers, format: 'u8', surface: true }).copyFromSync(data)
  const shape = { grid: Math.ceil(data.length / 64), block: 64 }
  const [out] = await t.run(shape, surface(t, sheets), new Uint8Array(data.length), n, layers)
  t.same(out as Uint8Array, data)
  t.same(
    (await sheets.toArray()) as Uint8Array,
    data.map((value) => 255 - value),
  )
})
