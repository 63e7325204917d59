import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

const mebibyte = 2 ** 20
const environment = { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1', SHOAL_SIM_MEMORY_BYTES: String(64 * mebibyte) }

async function outcome(...options: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runFixture('droppedBuffers.mjs', environment, { arguments: options })
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout) as Record<string, unknown>
}

const kinds = ['DeviceBuffer', 'PhysicalMemory', 'GrowableRange']

test.each(['sync', 'turns'].flatMap((way) => kinds.map((kind) => [kind, way] as const)))(
  'dropped objects of class %s never exhaust the memory of the device (%s)',
  async (kind, way) => {
    expect(await outcome(way, kind)).toEqual({ made: 3 * 64, held: 0 })
  },
)

test('the out-of-memory error reports the requested size, the free memory and the number of dropped buffers', async () => {
  const { made, held, message } = await outcome('held')
  expect([made, held]).toEqual([21 + 64, 64])
  expect(message).toContain('cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2)')
  expect(message).toContain(`asked for: ${mebibyte} bytes; free on device 0: 0 of ${64 * mebibyte} bytes`)
  expect(message).toContain('dropped without dispose() so far: 21 objects with memory')
})

test('the garbage collector knows the size of device and page-locked memory until disposal', async () => {
  const { GrowableRange, ...told } = (await outcome('counted')) as Record<string, number[]>
  expect(Object.keys(told)).toEqual(['DeviceBuffer', 'PinnedBuffer', 'PhysicalMemory', 'CudaArray'])
  for (const [name, [during = 0, after = 0]] of Object.entries(told)) {
    expect([name, Math.abs(during - 32) <= 2, Math.abs(after) <= 2]).toEqual([name, true, true])
  }
  // The buffer had 0, 32, 48, 8, 0 and 32 MiB before its disposal. It shrinks in whole pieces, here of 32 and 16 MiB.
  expect(GrowableRange?.map((size) => Math.round(size / 4) * 4)).toEqual([0, 32, 48, 32, 0, 32, 0])
})
