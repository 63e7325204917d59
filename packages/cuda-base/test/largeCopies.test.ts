import { expect, test } from 'vitest'
import { copiedPerTurn } from '../../../tooling/config/src/copiedPerTurn.js'

process.env['SHOAL_DEVICE'] = 'sim'
const { DeviceBuffer } = await import('@shoal/cuda-base')
const { TestDevice } = await import('./support.js')

const megabyte = 1024 * 1024
const device = new TestDevice(0)

test('DeviceBuffer.copyTo and toArray give much memory in parts, with turns of the event loop between them', async () => {
  using buffer = DeviceBuffer.allocate(device, 'u8', 8 * megabyte)
  buffer.fillSync(7)
  const target = new Uint8Array(8 * megabyte)
  for (const work of [() => buffer.copyTo(target), () => buffer.toArray()]) {
    expect(await copiedPerTurn(work)).toBeLessThanOrEqual(2 * megabyte)
  }
  expect(target.every((byte) => byte === 7)).toBe(true)
})

test('DeviceBuffer.copyTo rejects when its target is detached meanwhile', async () => {
  using buffer = DeviceBuffer.zeros(device, 'u8', 8 * megabyte)
  const target = new Uint8Array(8 * megabyte)
  const copied = buffer.copyTo(target)
  structuredClone(target.buffer, { transfer: [target.buffer] })
  await expect(copied).rejects.toThrow('DeviceBuffer.copyTo: target must stay as long as it is')
  await buffer.copyTo(new Uint8Array(8 * megabyte))
})
