import { inspect } from 'node:util'
import { cuPointerGetAttribute } from '@shoal/cuda-sys/driver'
import { Device, DeviceBuffer } from '@shoal/driver'
import { Registration } from '@shoal/nvshmem'
import { memoryProtocol } from '@shoal/types'
import { describe, expect, test, vi } from 'vitest'
import { resultsOf } from './fixtures/job.js'
import { anything, onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()

describe('Registration', () => {
  test('covers a range once, ends once, and unregisterAll ends all registrations', async () => {
    const status = { error: 'NVSHMEMX_ERROR_INVALID_VALUE' }
    for (const result of await resultsOf('heap.registered', 2)) {
      expect(result).toMatchObject({
        twice: status,
        gone: status,
        noMapping: status,
        tooMuch: { error: 'NVSHMEMX_ERROR_OUT_OF_MEMORY' },
        noCode: { error: expect.stringMatching(/^NVSHMEMX_ERROR/) },
        disposed: true,
      })
    }
  })

  test('exposes the address of the memory, and prints one line', async () => {
    const memory = pe.memory()
    const { address } = memory[memoryProtocol]
    const registration = await pe.session.register(memory)
    expect(registration).toBeInstanceOf(Registration)
    expect(registration).toMatchObject({ address, byteLength: 64, disposed: false })
    const line = `Registration { address: 0x${address.toString(16)}, byteLength: 64`
    expect(inspect(registration)).toBe(`${line} }`)
    await registration[Symbol.asyncDispose]()
    expect(inspect(registration)).toBe(`${line}, disposed: true }`)
  })

  test.each(['dispose()', 'unregisterAll()'])('memory disposed while registered is freed after %s', async (way) => {
    const buffer = DeviceBuffer.zeros(Device.get(0), 'u8', 4096)
    const { address } = buffer
    const isThere = (): boolean => cuPointerGetAttribute(new Uint32Array(2), 2, address as never) === 0
    const registration = await pe.session.register(buffer)
    buffer.disposeSync()
    expect([buffer.disposed, isThere()]).toEqual([true, true])
    await (way === 'dispose()' ? registration.dispose() : pe.session.unregisterAll())
    await vi.waitUntil(() => !isThere(), { timeout: 60_000, interval: 5 })
  })

  refuses(pe, [
    [
      'a value other than memory',
      () => pe.session.register(anything({})),
      /Session.register: memory must be an object with/,
    ],
    ['memory of another device', () => pe.session.register(pe.memory({ deviceOrdinal: 1 })), /belongs to device 1/],
    [
      'half an element as symmetric memory',
      () => pe.session.registerSymmetric(pe.memory({ byteLength: 6 }), 'f32'),
      /no whole elements/,
    ],
    [
      'an unknown option',
      () => pe.session.registerSymmetric(pe.memory(), 'f32', anything({ zeroed: true })),
      "Session.registerSymmetric: options must have only the keys signal, timeout, not 'zeroed'",
    ],
  ])
})
