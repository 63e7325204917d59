import assert from 'node:assert/strict'
import { DeviceBuffer, DisposedError, Module, StatusError } from '@shoal/driver'
import {
  type AddressMode,
  type ArrayFormat,
  CudaArray,
  MipmappedArray,
  SurfaceObject,
  TextureObject,
  type TextureOptions,
} from '@shoal/driver/texture'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { fetchPtx, type Geometry, type SurfaceGeometry, samplePtx, surfacePtx } from '../../support/texels/kernels.js'
import { type ReferenceTexels, sampled } from '../../support/texels/reference.js'
import { assertNear, floatsOf, modes, type Place, placesFor, sampler } from '../../support/texels/sampler.js'
import { captured, copies } from './arrayCopies.js'

const addressing: ConformanceCase = {
  name: 'textures: all address and filter modes, in 1 to 3 dimensions, against a reference',
  async run(t) {
    const dimensions = [
      { geometry: '1d', sizes: [32] },
      { geometry: '2d', sizes: [16, 8] },
      { geometry: '3d', sizes: [8, 4, 16] },
    ] as const
    for (const { geometry, sizes } of dimensions) {
      const sample = sampler(t, geometry, 'f32')
      const [width, height, depth] = sizes as readonly number[]
      const shape = { width: width as number, height, depth }
      const values = Float32Array.from({ length: sizes.reduce((a, b) => a * b, 1) * 4 }, () => t.random.integer(0, 255))
      const array = t.own(CudaArray.create(t.device, { ...shape, format: 'f32', channels: 4 })).copyFromSync(values)
      const texels: ReferenceTexels = { values, channels: 4, sizes }
      for (const normalizedCoordinates of [false, true]) {
        for (const filterMode of ['point', 'linear'] as const) {
          for (const mode of modes) {
            if (!normalizedCoordinates && (mode === 'wrap' || mode === 'mirror')) continue
            // The other dimensions have other modes.
            const others = modes.filter((other) => normalizedCoordinates || other === 'clamp' || other === 'border')
            const addressMode = [
              mode,
              ...Array.from({ length: 2 }, () => others[t.random.integer(0, others.length - 1)]),
            ]
            const borderColor = [1, 2, 3, 250]
            const rules = { addressMode: addressMode as AddressMode[], filterMode, normalizedCoordinates, borderColor }
            using texture = TextureObject.create(array, rules)
            const places = placesFor(t, sizes, normalizedCoordinates, 200)
            const found = floatsOf(await sample(texture, places))
            const reference = { ...rules, filtered: filterMode === 'linear', normalized: normalizedCoordinates }
            const expected = places.flatMap(({ at }) =>
              [0, 1, 2, 3].map((part) => sampled(texels, reference, at, part)),
            )
            // Weights have 8 bits in each dimension. Unfiltered values are exact.
            const tolerance = filterMode === 'linear' ? (256 * sizes.length) / 256 : 0
            assertNear(
              found,
              expected,
              tolerance,
              `${geometry} ${filterMode} ${addressMode.join(' ')} ${normalizedCoordinates}`,
            )
          }
        }
      }
    }
  },
}

const reading: ConformanceCase = {
  name: 'textures: integers as they are and as numbers from 0 to 1, halves, and colours of sRGB',
  async run(t) {
    const [width, height] = [16, 8]
    const places = Array.from({ length: width * height }, (_, at) => ({
      at: [(at % width) + 0.5, Math.floor(at / width) + 0.5],
    }))
    const make = (format: ArrayFormat, values: ArrayBufferView, options: TextureOptions): TextureObject => {
      const array = t.own(CudaArray.create(t.device, { width, height, format, channels: 4 }))
      array.copyFromSync(values as Float32Array)
      return t.own(TextureObject.create(array, options))
    }
    const asIs = { unsigned: sampler(t, '2d', 'u32'), signed: sampler(t, '2d', 's32'), real: sampler(t, '2d', 'f32') }
    const count = width * height * 4
    for (const format of ['u8', 'u16', 'u32', 'i8', 'i16', 'i32'] as const) {
      const values = t.random.array(format, count)
      const isSigned = format.startsWith('i')
      const words = await (isSigned ? asIs.signed : asIs.unsigned)(make(format, values, {}), places)
      assertSameBits(
        isSigned ? new Int32Array(words.buffer) : words,
        isSigned ? Int32Array.from(values) : Uint32Array.from(values),
        format,
      )
      if (format.endsWith('32')) continue
      const most = 2 ** (8 * values.BYTES_PER_ELEMENT - (isSigned ? 1 : 0)) - 1
      const found = await asIs.real(make(format, values, { readMode: 'normalizedFloat' }), places)
      const expected = Array.from(values, (value) => Math.max(value / most, -1))
      assertNear(floatsOf(found), expected, 2 ** -16, `${format} as numbers`)
    }
    const bits = Uint16Array.from({ length: count }, (_, at) => 0x3c00 + at)
    const halves = floatsOf(await asIs.real(make('f16', bits, {}), places))
    assertNear(
      halves,
      Array.from(bits, (_, at) => 1 + at / 1024),
      0,
      'f16',
    )
    const colours = Uint8Array.from({ length: count }, (_, at) => at % 256)
    const linear = floatsOf(await asIs.real(make('u8', colours, { readMode: 'normalizedFloat', srgb: true }), places))
    const expected = Array.from(colours, (value, at) => {
      const c = value / 255
      return at % 4 === 3 ? c : c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
    })
    assertNear(linear, expected, 1 / 256, 'sRGB')
  },
}

const memory: ConformanceCase = {
  name: 'textures: linear and pitched memory, zeroes beyond its end',
  async run(t) {
    const values = Float32Array.from({ length: 40 * 4 }, () => t.random.signed())
    const list = t.own(DeviceBuffer.from(t.device, values))
    const texture = t.own(TextureObject.create({ memory: list, channels: 4 }))
    const fetch = t.own(Module.loadSync(t.device, fetchPtx)).kernel('fetch', ['texture', 'ptr', 'u32', 'i32'])
    const out = t.own(DeviceBuffer.zeros(t.device, 'f32', 44 * 4))
    fetch.launch({ grid: 1, block: 64 }, texture, out, 44, -2)
    const expected = new Float32Array(44 * 4)
    expected.set(values, 8)
    assertSameBits(await out.toArray(), expected, 'linear memory')
    assert.deepEqual(texture.describeResource(), {
      type: 'linear',
      handle: list.address,
      format: 'f32',
      channels: 4,
      byteLength: list.byteLength,
    })

    const [width, height, pitch] = [32, 8, 256]
    const rows = Float32Array.from({ length: (pitch / 4) * height }, () => t.random.integer(0, 255))
    const buffer = t.own(DeviceBuffer.from(t.device, rows))
    const options = { addressMode: ['wrap', 'mirror'], filterMode: 'linear', normalizedCoordinates: true } as const
    const pitched = t.own(TextureObject.create({ memory: buffer, width, height, pitch }, options))
    const places = placesFor(t, [width, height], true, 200)
    const found = floatsOf(await sampler(t, '2d', 'f32')(pitched, places)).filter((_, at) => at % 4 === 0)
    const tight = rows.filter((_, at) => at % (pitch / 4) < width)
    const texels = { values: tight, channels: 1, sizes: [width, height] }
    const rules = { addressMode: options.addressMode, filtered: true, normalized: true }
    assertNear(
      found,
      places.map(({ at }) => sampled(texels, rules, at, 0)),
      2,
      'pitched memory',
    )
  },
}

const layers: ConformanceCase = {
  name: 'textures: layers, faces of cubemaps, four texels gathered',
  async run(t) {
    const real = async (geometry: Geometry, texture: TextureObject, places: readonly Place[]) =>
      floatsOf(await sampler(t, geometry, 'f32')(texture, places)).filter((_, at) => at % 4 === 0)
    const random = (length: number): Float32Array => Float32Array.from({ length }, () => t.random.integer(0, 255))
    const [width, height, count] = [16, 8, 5]
    for (const [geometry, sizes] of [
      ['a1d', [width]],
      ['a2d', [width, height]],
    ] as const) {
      const values = random(sizes.reduce((a: number, b: number) => a * b, count))
      const shape = { width, height: geometry === 'a2d' ? height : undefined, layers: count }
      const array = t.own(CudaArray.create(t.device, { ...shape, format: 'f32' })).copyFromSync(values)
      const texture = t.own(TextureObject.create(array, { filterMode: 'linear' }))
      const places = placesFor(t, sizes, false, 100).map((place, at) => ({ ...place, layer: at % count }))
      const rules = { addressMode: ['clamp', 'clamp'] as const, filtered: true, normalized: false }
      const expected = places.map(({ at, layer }) => sampled({ values, channels: 1, sizes, layer }, rules, at, 0))
      assertNear(await real(geometry, texture, places), expected, 2, geometry)
    }
    const n = 4
    const faces = random(2 * 6 * n * n)
    const cubes = t
      .own(CudaArray.create(t.device, { width: n, cubemap: true, layers: 2, format: 'f32' }))
      .copyFromSync(faces)
    const cubeTexture = t.own(TextureObject.create(cubes, { normalizedCoordinates: true }))
    // The middle of each texel of each face, by the definition of cubemaps' axes.
    const directions = (u: number, v: number): number[][] => [
      [1, -v, -u],
      [-1, -v, u],
      [u, 1, v],
      [u, -1, -v],
      [u, -v, 1],
      [-u, -v, -1],
    ]
    const places = Array.from({ length: faces.length }, (_, at) => {
      const [x, y] = [((at % n) + 0.5) / n, ((Math.floor(at / n) % n) + 0.5) / n]
      const face = Math.floor(at / n / n)
      return { at: directions(2 * x - 1, 2 * y - 1)[face % 6] as number[], layer: Math.floor(face / 6) }
    })
    assertSameBits(await real('acube', cubeTexture, places), faces, 'cubemaps')

    const colours = random(width * height)
    const array = t
      .own(CudaArray.create(t.device, { width, height, format: 'f32', gather: true }))
      .copyFromSync(colours)
    const gathered = floatsOf(
      await sampler(t, '2d', 'f32', 'gather')(t.own(TextureObject.create(array)), [{ at: [5, 3] }, { at: [12, 7] }]),
    )
    const texel = (x: number, y: number): number => colours[y * width + x] as number
    const around = (x: number, y: number): number[] => [
      texel(x - 1, y),
      texel(x, y),
      texel(x, y - 1),
      texel(x - 1, y - 1),
    ]
    assertSameBits(gathered, Float32Array.from([...around(5, 3), ...around(12, 7)]), 'gathered texels')
  },
}

const mipmaps: ConformanceCase = {
  name: 'mipmapped arrays: each level, two of them blended, and a view of some',
  async run(t) {
    const array = t.own(MipmappedArray.create(t.device, { width: 32, height: 16, format: 'f32' }))
    assert.equal(array.levels, 6)
    for (let level = 0; level < array.levels; level += 1) {
      const own = array.level(level)
      assert.deepEqual([own.width, own.height], [Math.max(32 >> level, 1), Math.max(16 >> level, 1)])
      own.copyFromSync(new Float32Array(own.width * own.height).fill(level * 10))
    }
    const sample = sampler(t, '2d', 'f32', 'level')
    const ask = async (options: TextureOptions, levels: readonly number[]): Promise<Float32Array> => {
      using texture = TextureObject.create(array, { normalizedCoordinates: true, ...options })
      const found = await sample(
        texture,
        levels.map((level) => ({ at: [0.4, 0.6], level })),
      )
      return floatsOf(found).filter((_, at) => at % 4 === 0)
    }
    const levels = [0, 0.25, 1, 2.25, 2.75, 4.5, 5, 9, -1]
    const within = (level: number): number => Math.min(Math.max(level, 0), 5)
    assertNear(
      await ask({ mipmapFilterMode: 'linear' }, levels),
      levels.map((level) => within(level) * 10),
      10 / 256,
      'levels blended',
    )
    const nearest = levels.filter((level) => level % 1 !== 0.5)
    assertNear(
      await ask({}, nearest),
      nearest.map((level) => Math.round(within(level)) * 10),
      0,
      'nearest levels',
    )
    assertNear(await ask({ mipmapLevelClamp: [1, 3] }, [0, 2, 5]), [10, 20, 30], 0, 'levels clamped')
    await viewOfLevels(t, array, sample)
    // The same bits, read as another type.
    const numbers = Uint32Array.from({ length: 64 }, (_, at) => 0x3f80_0000 + at)
    const words = t.own(CudaArray.create(t.device, { width: 64, height: 1, format: 'u32' })).copyFromSync(numbers)
    const asReal = t.own(TextureObject.create(words, { view: { format: 'f32x1' } }))
    const places = Array.from(numbers, (_, at) => ({ at: [at + 0.5, 0.5] }))
    const bits = (await sampler(t, '2d', 'f32')(asReal, places)).filter((_, at) => at % 4 === 0)
    assertSameBits(bits, numbers, 'a view of another type')
  },
}

/**
 * Tests which views of levels 2 and 3 a device accepts. An H200 has accepted none so far. An accepted view must read
 * the right values. The software device accepts views that follow the documentation.
 */
async function viewOfLevels(t: CaseContext, array: MipmappedArray, sample: ReturnType<typeof sampler>): Promise<void> {
  const sizes = { 'of the array': {}, 'of the level': { width: 8, height: 4 }, none: { width: 0, height: 0 } }
  const formats = { named: {}, same: { format: 'same' } } as const
  const clamps = { all: {}, within: { mipmapLevelClamp: [0, 1] } } as const
  const answers = new Map<string, string[]>()
  for (const [size, extent] of Object.entries(sizes)) {
    for (const [format, type] of Object.entries(formats)) {
      for (const [clamp, options] of Object.entries(clamps)) {
        const view = { ...extent, ...type, firstMipmapLevel: 2, lastMipmapLevel: 3 }
        const what = `size ${size}, format ${format}, levels clamped ${clamp}`
        const isDocumented = size === 'of the array'
        let answer = 'taken'
        try {
          using part = TextureObject.create(array, { normalizedCoordinates: true, ...options, view })
          assert.equal(part.describeView()?.firstMipmapLevel, 2)
          const places = [0, 1, 4].map((level) => ({ at: [0.5, 0.5], level }))
          const found = floatsOf(await sample(part, places)).filter((_, at) => at % 4 === 0)
          assertNear(found, [20, 30, 30], 0, `a view of levels, ${what}`)
        } catch (error) {
          if (!(error instanceof StatusError) || (t.isSoftware && isDocumented)) throw error
          answer = error.code
        }
        answers.set(answer, [...(answers.get(answer) ?? []), what])
      }
    }
  }
  for (const [answer, views] of answers) t.note(`views of levels, ${answer}: ${views.join('; ')}`)
}

const surfaces: ConformanceCase = {
  name: 'surfaces: read and written in 1 to 3 dimensions and in layers, beyond the border too',
  async run(t) {
    const dimensions: readonly [
      SurfaceGeometry,
      { width: number; height?: number; depth?: number; layers?: number },
    ][] = [
      ['1d', { width: 13 }],
      ['2d', { width: 9, height: 7 }],
      ['3d', { width: 6, height: 5, depth: 4 }],
      ['a2d', { width: 7, height: 3, layers: 3 }],
    ]
    for (const [geometry, shape] of dimensions) {
      const { width, height = 1, depth = 1, layers: count = 1 } = shape
      const slices = depth * count
      const values = t.random.array('u32', width * height * slices)
      const array = t.own(CudaArray.create(t.device, { ...shape, format: 'u32', surface: true })).copyFromSync(values)
      const surface = t.own(SurfaceObject.create(array))
      assert.deepEqual(surface.describeResource(), { type: 'array', handle: array.handle })
      const touch = t.own(Module.loadSync(t.device, surfacePtx(geometry))).kernel('touch', ['surface', 'ptr', 'u32'])
      // One more element in each dimension that the surface has.
      const more = (size: number): number => (size > 1 ? size + 1 : size)
      const grid = [width + 1, more(height), more(slices)] as const
      const out = t.own(DeviceBuffer.zeros(t.device, 'u32', grid[0] * grid[1] * grid[2] * 2))
      touch.launch({ grid, block: 1 }, surface, out, 7)
      const after = await array.toArray()
      assertSameBits(
        after,
        values.map((value) => value + 7),
        `${geometry} written`,
      )
      // The clamped element may already have its new value.
      const found = (await out.toArray()).filter((_, at) => at % 2 === 0)
      const expected = Uint32Array.from({ length: found.length }, (_, at) => {
        const [x, y, z] = [at % grid[0], Math.floor(at / grid[0]) % grid[1], Math.floor(at / grid[0] / grid[1])]
        const isWithin = x < width && y < height && z < slices
        return isWithin ? (values[(z * height + y) * width + x] as number) : 0
      })
      assertSameBits(found, expected, `${geometry} read`)
    }
  },
}

const lives: ConformanceCase = {
  name: 'textures: described as they were made; what they look into is kept, and missed once it is gone',
  async run(t) {
    const array = t.own(CudaArray.create(t.device, { width: 8, height: 8, format: 'u8', channels: 4 }))
    const options = {
      addressMode: ['border', 'mirror', 'clamp'],
      filterMode: 'linear',
      readMode: 'normalizedFloat',
      normalizedCoordinates: true,
      srgb: true,
      borderColor: [0.25, 0.5, 0.75, 1],
      mipmapFilterMode: 'point',
      mipmapLevelBias: 0.5,
      mipmapLevelClamp: [1, 4],
      maxAnisotropy: 4,
      seamlessCubemap: false,
      trilinearOptimization: false,
    } as const
    const texture = t.own(TextureObject.create(array, options))
    // A driver of CUDA 13.0 does not report the border colour.
    const { borderColor: _, ...described } = texture.describe()
    const { borderColor: __, ...wanted } = options
    assert.deepEqual(described, wanted)
    assert.deepEqual(texture.describeResource(), { type: 'array', handle: array.handle })
    assert.equal(texture.describeView(), undefined)
    const sample = t
      .own(Module.loadSync(t.device, samplePtx('2d', 'f32')))
      .kernel('sample', ['texture', 'ptr', 'ptr', 'u32'])
    const [places, out] = ['f32', 'f32'].map((dtype) => t.own(DeviceBuffer.zeros(t.device, dtype as 'f32', 64)))
    const launch = (): void => sample.launch({ grid: 1, block: 1 }, texture, places as never, out as never, 1)
    launch()
    await t.device.primaryContext.synchronize()
    array.dispose()
    assert.throws(launch, DisposedError)
    assert.throws(() => texture.describe(), DisposedError)
    texture.dispose()
    assert.throws(launch, DisposedError)
  },
}

export const textureSuite: Suite = {
  name: 'driver/texture',
  cases: [copies, captured, addressing, reading, memory, layers, mipmaps, surfaces, lives],
}
