import { inspect } from 'node:util'
import { expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DisposedError, StatusError } = await import('@shoal/types')
const { DeviceBuffer } = await import('@shoal/driver/shared')
const { DmaBuf } = await import('@shoal/driver/external')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)

test('the software device reports that it has no dma-buf', () => {
  expect(device.attribute('DMA_BUF_SUPPORTED')).toBe(0)
  using buffer = DeviceBuffer.allocate(device, 'u8', 4096)
  for (const options of [undefined, {}, { mapping: 'default' }, { mapping: 'pcie' }] as const) {
    expect(() => DmaBuf.export(device, buffer, options)).toThrow(
      expect.objectContaining({ name: 'StatusError', status: 801, code: 'CUDA_ERROR_NOT_SUPPORTED' }),
    )
  }
  expect(() => DmaBuf.export(device, buffer.slice(0, 100))).toThrow(StatusError)
  expect(inspect(DmaBuf)).toContain('DmaBuf')
})

test.each<[string, unknown[], string]>([
  ['an invalid owner', [7, { address: 1n }], 'DmaBuf.export: owner must be a Device or a Context, not 7'],
  ['invalid memory', [device, 7], 'DmaBuf.export: memory must be'],
  ['an unknown option', [device, undefined, { over: 1 }], 'DmaBuf.export: options must have only the keys mapping'],
  ['an unknown mapping', [device, undefined, { mapping: 'nvlink' }], 'DmaBuf.export: mapping must be'],
])('dma-buf export refuses %s by name', (_, given, words) => {
  using buffer = DeviceBuffer.allocate(device, 'u8', 4096)
  const [owner, memory = buffer, options] = given
  expect(() => DmaBuf.export(owner as never, memory as never, options as never)).toThrow(words)
})

test('dma-buf export refuses disposed memory', () => {
  const buffer = DeviceBuffer.allocate(device, 'u8', 4096)
  buffer.dispose()
  expect(() => DmaBuf.export(device, buffer)).toThrow(DisposedError)
})
