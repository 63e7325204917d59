import assert from 'node:assert/strict'
import {
  allocationGranularity,
  type DeviceAttribute,
  DeviceBuffer,
  Module,
  PhysicalMemory,
  ShoalError,
  StatusError,
} from '@shoal/driver'
import { type ArrayFormat, CudaArray, MipmappedArray, mapArrays, TextureObject } from '@shoal/driver/texture'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { samplePtx } from '../../support/texels/kernels.js'

function need(t: CaseContext, attribute: DeviceAttribute): void {
  if (t.device.attribute(attribute) === 0) t.skip(`this device says no to ${attribute}`)
}

/** Returns memory for arrays, with at least `bytes` bytes. */
function poolOf(t: CaseContext, bytes: number): PhysicalMemory {
  const granularity = allocationGranularity(t.device)
  const length = Math.ceil(bytes / granularity) * granularity
  const pool = t.own(PhysicalMemory.create(t.device, length, { tilePool: true }))
  t.note(`memory made as a tile pool ${pool.properties.tilePool ? 'is told to be one' : 'is not told to be one'}`)
  return pool
}

const random = (t: CaseContext, length: number): Float32Array<ArrayBuffer> =>
  Float32Array.from({ length }, () => t.random.integer(1, 1000))

/** Reads the first channel of the texels at these indexes. */
async function texels(t: CaseContext, array: CudaArray, places: readonly (readonly number[])[]): Promise<number[]> {
  const kernel = t
    .own(Module.loadSync(t.device, samplePtx('2d', 'f32')))
    .kernel('sample', ['texture', 'ptr', 'ptr', 'u32'])
  using texture = TextureObject.create(array)
  const numbers = Float32Array.from(places.flatMap(([x = 0, y = 0]) => [x + 0.5, y + 0.5, 0, 0, 0, 0, 0, 0]))
  using given = DeviceBuffer.from(t.device, numbers)
  using out = DeviceBuffer.zeros(t.device, 'f32', places.length * 4)
  kernel.launch({ grid: 1, block: places.length }, texture, given, out, places.length)
  return [...(await out.toArray())].filter((_, at) => at % 4 === 0)
}

const deferred: ConformanceCase = {
  name: 'an array whose memory is mapped to it as a whole, and given to another one',
  async run(t) {
    need(t, 'DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED')
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const [width, height] = [t.random.integer(1, 600), t.random.integer(1, 400)]
    const shape = { width, height, format: 'f32', deferredMapping: true } as const
    const [one, other] = [0, 1].map(() => t.own(CudaArray.create(t.device, shape))) as [CudaArray, CudaArray]
    const { size, alignment } = one.memoryRequirements()
    assert.ok(size >= width * height * 4 && alignment > 0)
    t.note(`${width} × ${height} of f32 take ${size} bytes, aligned to ${alignment}`)
    const pool = poolOf(t, size)
    mapArrays([{ array: one, memory: pool }], { stream })
    const values = random(t, width * height)
    one.copyFrom(values, { stream })
    assertSameBits(await one.toArray({ stream }), values, 'what was copied to the array')
    const last = [width - 1, height - 1] as const
    assert.deepEqual(await texels(t, one, [[0, 0], last]), [values[0], values.at(-1)])
    mapArrays([{ array: one }, { array: other, memory: pool }], { stream })
    assertSameBits(await other.toArray({ stream }), values, 'the same memory in another array')
  },
}

const tiles: ConformanceCase = {
  name: 'a sparse array: tiles get memory, lose it, and swap it',
  async run(t) {
    need(t, 'SPARSE_CUDA_ARRAY_SUPPORTED')
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const probe = t.own(CudaArray.create(t.device, { width: 512, height: 512, format: 'f32', sparse: true }))
    const { tile } = probe.sparseProperties()
    t.note(`a tile of f32 has ${tile.width} × ${tile.height} × ${tile.depth} texels`)
    const [width, height] = [tile.width * 3, tile.height * 2]
    const array = t.own(CudaArray.create(t.device, { width, height, format: 'f32', sparse: true }))
    const bytes = 65536
    const pool = poolOf(t, 4 * bytes)
    const box = (x: number, y: number) => ({
      x: x * tile.width,
      y: y * tile.height,
      width: tile.width,
      height: tile.height,
    })
    // Maps a row of two tiles at once, and one tile below it.
    const wide = { ...box(0, 0), width: tile.width * 2 }
    mapArrays(
      [
        { array, memory: pool, region: wide },
        { array, memory: pool, memoryOffset: 3 * bytes, region: box(2, 1) },
      ],
      { stream },
    )
    const [upper, lower] = [random(t, tile.width * 2 * tile.height), random(t, tile.width * tile.height)]
    array.copyFrom(upper, { region: wide, stream })
    array.copyFrom(lower, { region: box(2, 1), stream })
    assertSameBits(await array.toArray({ region: wide, stream }), upper, 'two tiles')
    assertSameBits(await array.toArray({ region: box(2, 1), stream }), lower, 'a tile in the corner')
    const corner = [width - 1, height - 1] as const
    assert.deepEqual(await texels(t, array, [[tile.width, 0], corner]), [upper[tile.width], lower.at(-1)])
    // Maps the second tile to the memory of the lower tile.
    mapArrays(
      [
        { array, region: box(1, 0) },
        { array, memory: pool, memoryOffset: bytes, region: box(2, 1) },
      ],
      { stream },
    )
    const second = Float32Array.from({ length: lower.length }, (_, at) => {
      const [x, y] = [at % tile.width, Math.floor(at / tile.width)]
      return upper[y * tile.width * 2 + tile.width + x] as number
    })
    assertSameBits(await array.toArray({ region: box(2, 1), stream }), second, 'memory that moved')
    // CUDA does not define what a GPU reads from texels without memory.
    if (t.isSoftware) assert.deepEqual(await texels(t, array, [[tile.width, 0]]), [0])
  },
}

const levels: ConformanceCase = {
  name: 'a sparse mipmapped array: a level by its tiles, the small ones by the tail',
  async run(t) {
    need(t, 'SPARSE_CUDA_ARRAY_SUPPORTED')
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const array = t.own(MipmappedArray.create(t.device, { width: 512, height: 256, format: 'f32', sparse: true }))
    const { tile, mipTailFirstLevel, mipTailSize } = array.sparseProperties()
    t.note(`the tail begins at level ${mipTailFirstLevel} of ${array.levels} and has ${mipTailSize} bytes`)
    assert.ok(mipTailFirstLevel > 0 && mipTailSize > 0)
    const across = Math.ceil(512 / tile.width) * Math.ceil(256 / tile.height)
    const pool = poolOf(t, across * 65536 + mipTailSize)
    mapArrays(
      [
        { array, memory: pool },
        { array, memory: pool, memoryOffset: across * 65536, tail: true },
      ],
      { stream },
    )
    for (const index of [0, mipTailFirstLevel, array.levels - 1]) {
      const level = array.level(index)
      const values = random(t, level.width * level.height)
      level.copyFrom(values, { stream })
      assertSameBits(await level.toArray({ stream }), values, `level ${index}`)
    }
  },
}

const formats: readonly ArrayFormat[] = [
  ...(['nv12', 'p010', 'p016', 'nv16', 'p210', 'p216', 'yuv444-planar8', 'yuv444-planar10'] as const),
  ...(['yuv444-semiplanar8', 'yuv444-semiplanar16', 'yuy2', 'y210', 'y216', 'ayuv', 'y410', 'y416'] as const),
  ...(['unorm-101010-2', 'bc1', 'bc1-srgb', 'bc2', 'bc2-srgb', 'bc3', 'bc3-srgb', 'bc4', 'bc4-signed'] as const),
  ...(['bc5', 'bc5-signed', 'bc6h', 'bc6h-signed', 'bc7', 'bc7-srgb'] as const),
]

const pictures: ConformanceCase = {
  name: 'formats of pictures and of compressed blocks: which the device has, and what their planes hold',
  async run(t) {
    const answers = new Map<string, string[]>()
    for (const format of formats) {
      let answer = 'taken'
      try {
        using array = CudaArray.create(t.device, { width: 16, height: 8, format })
        assert.equal(array.format, format)
        if (array.planes > 0) {
          const sizes: string[] = []
          for (let index = 0; index < array.planes; index += 1) {
            const plane = array.plane(index)
            const values = t.random.array(plane.format as 'u8', plane.width * plane.height * plane.channels)
            plane.copyFromSync(values)
            assertSameBits(await plane.toArray(), values, `plane ${index} of ${format}`)
            sizes.push(`${plane.width} × ${plane.height} of ${plane.channels} × ${plane.format}`)
          }
          t.note(`${format}: ${sizes.join(', ')}`)
        }
      } catch (error) {
        if (!(error instanceof ShoalError)) throw error
        answer = error instanceof StatusError ? error.code : error.message
      }
      answers.set(answer, [...(answers.get(answer) ?? []), format])
    }
    for (const [answer, names] of answers) t.note(`${answer}: ${names.join(', ')}`)
    if (t.isSoftware) assert.deepEqual(answers.get('taken'), formats.slice(0, 10))
  },
}

export const arrayMemorySuite: Suite = { name: 'driver: memory of arrays', cases: [deferred, tiles, levels, pictures] }
