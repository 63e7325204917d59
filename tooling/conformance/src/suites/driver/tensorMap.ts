import assert from 'node:assert/strict'
import { DeviceBuffer, DisposedError, Module } from '@shoal/driver'
import { TensorMap } from '@shoal/driver/texture'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'
import { mapPtx } from '../../support/texels/kernels.js'

function requireMaps(t: CaseContext): void {
  const { major } = t.device.computeCapability
  if (major < 9) t.skip(`tensor maps need compute capability 9.0, not ${major}`)
}

const encoded: ConformanceCase = {
  name: 'tensor maps: all types, swizzles and promotions; boxes and columns',
  run(t) {
    requireMaps(t)
    const memory = t.own(DeviceBuffer.zeros(t.device, 'u8', 1 << 20))
    const at = (dtype: 'f32'): DeviceBuffer<'f32'> => memory.reinterpret(dtype)
    const types = [
      'u8',
      'u16',
      'u32',
      'i32',
      'u64',
      'i64',
      'f16',
      'bf16',
      'f32',
      'f32-ftz',
      'tf32',
      'tf32-ftz',
      'f64',
    ] as const
    const seen = new Set<string>()
    for (const dtype of types) {
      const map = TensorMap.tiled(memory, { dtype, dimensions: [64, 32, 4], strides: [512, 512 * 32], box: [16, 8, 1] })
      seen.add(Buffer.from(map.bytes).toString('hex'))
    }
    assert.ok(seen.size > types.length / 2, 'the types make no difference')
    const whole = { dimensions: [64, 32], box: [32, 8] } as const
    for (const swizzle of ['none', '128B'] as const) TensorMap.tiled(at('f32'), { ...whole, swizzle })
    for (const swizzle of ['32B', '64B'] as const) TensorMap.tiled(at('f32'), { ...whole, box: [8, 8], swizzle })
    for (const l2Promotion of ['none', '64B', '128B', '256B'] as const)
      TensorMap.tiled(at('f32'), { ...whole, l2Promotion })
    TensorMap.tiled(at('f32'), { ...whole, outOfBoundsFill: 'nan', elementStrides: [1, 2] })
    const pictures = { dimensions: [64, 14, 14, 8], channelsPerPixel: 32, pixelsPerColumn: 64 } as const
    TensorMap.im2col(at('f32'), { ...pictures, lowerCorner: [-1, -1], upperCorner: [-1, -1], swizzle: '128B' })
    assert.throws(() => TensorMap.tiled(at('f32'), { ...whole, box: [64, 8], swizzle: '128B' }), RangeError)
  },
}

const passed: ConformanceCase = {
  name: 'tensor maps: a kernel gets the 128 bytes, also after the address was replaced, and none of freed memory',
  async run(t) {
    requireMaps(t)
    const [one, two] = [0, 1].map(() => t.own(DeviceBuffer.zeros(t.device, 'f32', 4096)))
    const map = TensorMap.tiled(one as DeviceBuffer<'f32'>, { dimensions: [64, 64], box: [32, 8], swizzle: '128B' })
    const kernel = t.own(Module.loadSync(t.device, mapPtx)).kernel('bytes', ['tensorMap', 'ptr'])
    const out = t.own(DeviceBuffer.zeros(t.device, 'u8', 128))
    const launched = async (): Promise<Uint8Array> => {
      kernel.launch({ grid: 1, block: 1 }, map, out)
      return await out.toArray()
    }
    const first = map.bytes
    assertSameBits(await launched(), first, 'a launch')
    map.replaceAddress(two as DeviceBuffer<'f32'>)
    assert.notDeepEqual(map.bytes, first)
    assertSameBits(await launched(), map.bytes, 'with another address')
    const prepared = kernel.prepare({ grid: 1, block: 1 }, map, out)
    map.replaceAddress(one as DeviceBuffer<'f32'>)
    prepared.launch()
    assertSameBits(await out.toArray(), first, 'a prepared launch')
    one?.dispose()
    assert.throws(() => prepared.launch(), DisposedError)
    await assert.rejects(launched(), DisposedError)
  },
}

export const tensorMapSuite: Suite = { name: 'driver/tensorMap', cases: [encoded, passed] }
