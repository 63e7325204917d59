import type { Random } from '../support/random.js'
import { type Geometry, samplePtx } from '../support/texels/kernels.js'
import type { Named, TextureCase } from './cases.js'

type Shape = Omit<TextureCase['array'], 'format' | 'channels'>
type Format = TextureCase['array']['format']

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const bytesOf = (format: Format): number => (format.endsWith('32') ? 4 : format.endsWith('16') ? 2 : 1)

/** Returns random texels. Integers have random bits, floats have similar magnitudes. */
function texels(format: Format, count: number, random: Random): Uint8Array {
  if (format === 'f32') return new Uint8Array(random.floats(count).buffer)
  const bytes = random.bytes(count * bytesOf(format))
  // Sign and fraction are random. The exponents are 2^-3 to 2^4.
  if (format === 'f16')
    for (let at = 1; at < bytes.length; at += 2)
      bytes[at] = ((bytes[at] as number) & 0x83) | ((12 + random.integer(0, 7)) << 2)
  return bytes
}

/**
 * Returns unusual places inside and outside of the texels: between texels, at their edges and centres, far away, and
 * almost zero.
 */
function places(shape: Shape, normalized: boolean, random: Random, levels: number): Uint8Array {
  const { width, height = width, depth = height, layers = 1 } = shape
  const sizes = [width, height, depth]
  const odd = [-0.5, 0, 0.25, 0.5, 1, 1.5, 0.4990234375, 2.501953125, -1.25, 1e-7]
  const at = (axis: number, turn: number): number => {
    const size = sizes[axis] as number
    const texel =
      turn < odd.length
        ? (odd[turn] as number)
        : turn % 3 === 0
          ? size - (odd[turn % odd.length] as number)
          : (random.signed() * 1.6 + 0.5) * size
    return normalized ? texel / size : texel
  }
  const rows = Array.from({ length: 40 }, (_, turn) => {
    const level = levels === 0 ? 0 : random.integer(-2, levels * 4) / 4
    const layer = random.integer(-1, layers)
    return [at(0, turn), at(1, (turn * 7) % 40), at(2, (turn * 11) % 40), level, layer, 0, 0, 0]
  })
  return new Uint8Array(Float32Array.from(rows.flat()).buffer)
}

const shapes: Readonly<Partial<Record<Geometry, Shape>>> = {
  '1d': { width: 13 },
  '2d': { width: 9, height: 7 },
  '3d': { width: 6, height: 5, depth: 4 },
  a1d: { width: 11, layers: 3 },
  a2d: { width: 7, height: 5, layers: 3 },
  cube: { width: 6, cubemap: true },
  acube: { width: 5, cubemap: true, layers: 2 },
}
const addressModes = ['wrap', 'clamp', 'mirror', 'border'] as const
const filterModes = ['point', 'linear'] as const
/** How texels are read: unchanged as floats or integers, or normalized to 1. */
const readings = [
  ['f32', 'element', [1, 2, 4]],
  ['f16', 'element', [4, 1]],
  ['u8', 'normalizedFloat', [4, 1]],
  ['i16', 'normalizedFloat', [2, 4]],
  ['u8', 'element', [2]],
  ['i16', 'element', [4]],
  ['u32', 'element', [1]],
] as const

const sizeOf = ({ width, height = 1, depth = 1, layers = 1, cubemap = false }: Shape): number =>
  cubemap ? width * width * 6 * layers : width * height * depth * layers

/** All address modes, filters, coordinates and ways to read, in all dimensions. Each seed gives new texels. */
export function textureCases(random: Random): readonly (TextureCase & Named)[] {
  const cases: (TextureCase & Named)[] = []
  const add = (
    geometry: Geometry,
    shape: Shape,
    [format, readMode, channelCounts]: readonly [Format, 'element' | 'normalizedFloat', readonly (1 | 2 | 4)[]],
    options: Pick<TextureCase['options'], 'addressMode' | 'filterMode' | 'normalizedCoordinates'> &
      Partial<TextureCase['options']>,
    more: { levels?: number; pitch?: number } = {},
  ): void => {
    const { addressMode, filterMode, normalizedCoordinates } = options
    const channels = channelCounts[random.integer(0, channelCounts.length - 1)] as 1 | 2 | 4
    const isInteger = readMode === 'element' && !format.startsWith('f')
    const type = !isInteger ? 'f32' : format.startsWith('u') ? 'u32' : 's32'
    const level = (index: number): Uint8Array => {
      const half = (size: number | undefined) => (size === undefined ? undefined : Math.max(1, size >> index))
      const { width, height, depth, layers, cubemap } = shape
      const less = { width: half(width) as number, height: half(height), depth: half(depth), layers, cubemap } as Shape
      return texels(format, sizeOf(less) * channels, random)
    }
    const words = [
      format,
      `${channels} channels`,
      readMode,
      filterMode,
      addressMode.join('/'),
      normalizedCoordinates ? 'normalized' : 'texels',
    ]
    const where = more.pitch === undefined ? geometry : 'rows of memory'
    const rest = Object.entries(options).filter(
      ([key]) => !['addressMode', 'filterMode', 'normalizedCoordinates'].includes(key),
    )
    const turned = !normalizedCoordinates && addressMode.some((mode) => mode === 'wrap' || mode === 'mirror')
    const stricter = turned
      ? 'the driver clamps where it cannot wrap'
      : isInteger && (filterMode === 'linear' || options.mipmapFilterMode === 'linear')
        ? 'integers cannot be mixed'
        : undefined
    cases.push({
      part: 'texture',
      name: [
        `${where}${more.levels === undefined ? '' : ` of ${more.levels} levels`}`,
        ...words,
        ...rest.map(([key, value]) => `${key} ${JSON.stringify(value)}`),
      ].join(', '),
      ...(stricter === undefined ? {} : { stricter }),
      ptx: samplePtx(geometry, type, more.levels === undefined ? '' : 'level'),
      array: { format, channels, ...shape },
      ...(more.pitch === undefined ? {} : { pitch: more.pitch }),
      texels: hex(more.pitch === undefined ? level(0) : texels(format, (more.pitch / 4) * (shape.height ?? 1), random)),
      ...(more.levels === undefined
        ? {}
        : { levels: Array.from({ length: more.levels }, (_, index) => hex(level(index))) }),
      options: { ...options, readMode },
      places: hex(places(shape, normalizedCoordinates || shape.cubemap === true, random, more.levels ?? 0)),
    })
  }
  for (const [geometry, shape] of Object.entries(shapes) as [Geometry, Shape][]) {
    const axes = geometry.includes('1d') ? 1 : geometry.includes('3d') ? 3 : 2
    for (const mode of addressModes)
      for (const filterMode of filterModes)
        for (const normalizedCoordinates of [false, true])
          for (const reading of readings) {
            if (shape.cubemap && !normalizedCoordinates) continue
            const addressMode = Array.from({ length: axes }, () => mode)
            const borderColor =
              reading[1] === 'element' && !reading[0].startsWith('f') ? [7, 9, 11, 13] : [0.25, 0.5, 0.75, 1]
            const options = {
              addressMode,
              filterMode,
              normalizedCoordinates,
              ...(mode === 'border' ? { borderColor } : {}),
            }
            add(geometry, shape, reading, options)
          }
  }
  const floats = readings[0]
  const bytes = readings[2]
  const plain = { addressMode: ['clamp', 'clamp'], filterMode: 'linear', normalizedCoordinates: true } as const
  for (const mixed of [
    ['wrap', 'mirror', 'border'],
    ['border', 'wrap', 'clamp'],
    ['mirror', 'clamp', 'wrap'],
  ] as const)
    for (const filterMode of filterModes)
      add('3d', shapes['3d'] as Shape, floats, {
        ...plain,
        addressMode: mixed,
        filterMode,
        borderColor: [2, -3, 4, -5],
      })
  for (const format of ['unorm8', 'snorm16', 'i8', 'u16'] as const)
    for (const filterMode of filterModes)
      add('2d', shapes['2d'] as Shape, [format, format.length > 3 ? 'element' : 'normalizedFloat', [1, 2, 4]], {
        ...plain,
        filterMode,
      })
  for (const filterMode of filterModes) add('2d', shapes['2d'] as Shape, bytes, { ...plain, filterMode, srgb: true })
  for (const [geometry, shape] of [
    ['1d', { width: 32 }],
    ['2d', { width: 32, height: 16 }],
    ['3d', { width: 16, height: 8, depth: 8 }],
    ['a2d', { width: 16, height: 16, layers: 2 }],
  ] as const)
    for (const mipmapFilterMode of filterModes)
      for (const more of [
        {},
        { mipmapLevelBias: 0.75 },
        { mipmapLevelClamp: [0.5, 1.5] },
        { maxAnisotropy: 8 },
      ] as const)
        add(
          geometry,
          shape,
          geometry === '2d' ? bytes : floats,
          { ...plain, addressMode: geometry === '1d' ? ['wrap'] : ['wrap', 'mirror'], mipmapFilterMode, ...more },
          { levels: 4 },
        )
  for (const mode of addressModes)
    for (const filterMode of filterModes)
      for (const normalizedCoordinates of [false, true])
        add(
          '2d',
          { width: 12, height: 6 },
          ['f32', 'element', [1]],
          { addressMode: [mode, mode], filterMode, normalizedCoordinates },
          { pitch: 512 },
        )
  return cases
}
