import { DeviceBuffer, PinnedBuffer } from '@shoal/driver'
import { copyNode, Graph } from '@shoal/driver/graph'
import { CudaArray } from '@shoal/driver/texture'
import type { DType } from '@shoal/types'
import type { ConformanceCase } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

const formats = ['u8', 'u16', 'u32', 'i8', 'i16', 'i32', 'f16', 'f32'] as const
const shapes = [
  { width: 37 },
  { width: 21, height: 13 },
  { width: 11, height: 7, depth: 5 },
  { width: 19, layers: 4 },
  { width: 9, height: 6, layers: 3 },
  { width: 8, cubemap: true },
  { width: 4, cubemap: true, layers: 2 },
] as const

export const copies: ConformanceCase = {
  name: 'arrays: every shape, format and number of channels goes in and comes back, as a whole and in boxes',
  async run(t) {
    for (const shape of shapes) {
      for (const format of formats) {
        const channels = t.random.integer(0, 2)
        const options = { ...shape, format, channels: ([1, 2, 4] as const)[channels as 0 | 1 | 2] }
        using array = CudaArray.create(t.device, options)
        const { width, height, depth, layers, cubemap } = array
        const slices = depth * layers * (cubemap ? 6 : 1)
        const what = `${JSON.stringify(shape)} of ${array.channels} × ${format}`
        const texels = t.random.array(format as DType, width * height * slices * array.channels)
        array.copyFrom(texels)
        assertSameBits(await array.toArray(), texels, what)
        // Copies a box through device memory, with gaps between its rows and slices.
        const x = t.random.integer(0, width - 1)
        const y = t.random.integer(0, height - 1)
        const z = t.random.integer(0, slices - 1)
        const region = { x, y, z, width: width - x, height: height - y, depth: slices - z }
        const bytes = (texels.byteLength / texels.length) * array.channels
        const [pitch, rows] = [region.width * bytes + 4 * bytes, region.height + 2]
        using memory = DeviceBuffer.zeros(
          t.device,
          format,
          (pitch * rows * region.depth * texels.length) / texels.byteLength,
        )
        array.copyToMemory(memory, { region, pitch, rows })
        using other = CudaArray.create(t.device, options)
        other.copyFrom(new (texels.constructor as new (length: number) => typeof texels)(texels.length))
        other.copyFrom(memory, { region, pitch, rows })
        const box = await array.toArray({ region })
        assertSameBits(await other.toArray({ region }), box, `${what}, through memory`)
        other.copyFrom(array)
        assertSameBits(await other.toArray(), texels, `${what}, from array to array`)
      }
    }
  },
}

export const captured: ConformanceCase = {
  name: 'arrays: copies in a graph',
  async run(t) {
    const stream = t.own(t.device.createStream({ nonBlocking: true }))
    const [from, to] = [0, 1].map(() => t.own(CudaArray.create(t.device, { width: 16, height: 4, format: 'f32' })))
    const memory = t.own(DeviceBuffer.zeros(t.device, 'f32', 64))
    const graph = t.own(
      Graph.capture(stream, () => {
        to?.copyFrom(from as CudaArray, { stream })
        to?.copyToMemory(memory, { stream })
      }),
    )
    const exec = t.own(graph.instantiate())
    for (let turn = 0; turn < 3; turn += 1) {
      const values = Float32Array.from({ length: 64 }, () => t.random.signed())
      from?.copyFromSync(values)
      exec.launch(stream)
      await stream.synchronize()
      assertSameBits(await memory.toArray(), values, 'a captured copy')
    }
    // Copies a box there and back through host memory, with explicit parameters.
    const host = t.own(
      PinnedBuffer.from(
        t.device,
        Float32Array.from({ length: 8 }, () => t.random.signed()),
      ),
    )
    const region = { x: 5, y: 1, width: 4, height: 2 }
    const made = t.own(Graph.create(t.device))
    const into = made.add(copyNode(from as CudaArray, host, { region }))
    const across = made.add(copyNode(to as CudaArray, from as CudaArray, { region, at: { x: 5, y: 1 } }), {
      dependencies: [into],
    })
    made.add(copyNode(memory.slice(0, 8), to as CudaArray, { region }), { dependencies: [across] })
    t.own(made.instantiate()).launch(stream)
    await stream.synchronize()
    assertSameBits(await memory.slice(0, 8).toArray(), Float32Array.from(host.array), 'copies added by hand')
  },
}
