import type { BackgroundWork } from '@shoal/ffi'
import { afterAll, beforeEach, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { AddressRange, allocationGranularity, DeviceBuffer, GrowableRange, PhysicalMemory } = await import(
  '@shoal/driver/shared'
)
const { keepWhile } = await import('@shoal/driver/basics')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const unit = allocationGranularity(device)

const addresses = AddressRange.reserve(unit)
afterAll(() => addresses.dispose())
beforeEach(() => expect(device.used).toBe(0))

/** Starts a call on a native thread that its caller may stop waiting for. */
function call() {
  let end = (): void => undefined
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  let isHeld = true
  const background: BackgroundWork = { release: () => void (isHeld = false) }
  return { ended, end, background, isHeld: () => isHeld }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const memories: readonly (readonly [string, () => AsyncDisposable & object])[] = [
  ['DeviceBuffer', () => DeviceBuffer.zeros(device, 'u8', unit)],
  [
    'GrowableRange',
    () => {
      const range = GrowableRange.reserve(device, { maximumBytes: unit, stepBytes: unit })
      range.resize(1)
      return range
    },
  ],
  [
    'MappedRange',
    () => {
      using memory = PhysicalMemory.create(device, unit)
      return addresses.map(memory)
    },
  ],
]

for (const [name, make] of memories) {
  test(`${name}: disposing memory waits for a call that still uses the memory`, async () => {
    const memory = make()
    const { ended, end, background } = call()
    keepWhile([memory], ended, background)
    let isOver = false
    const disposal = memory[Symbol.asyncDispose]().then(() => {
      isOver = true
    })
    await turn()
    expect([isOver, device.used > 0]).toEqual([false, true])
    end()
    await disposal
    expect(device.used).toBe(0)
  })

  test(`${name}: disposal does not wait for an aborted call, and frees the memory when that call returns`, async () => {
    for (const isBefore of [true, false]) {
      const memory = make()
      const { ended, end, background, isHeld } = call()
      keepWhile([memory], ended, background)
      if (isBefore) background.release?.()
      const disposal = memory[Symbol.asyncDispose]()
      if (!isBefore) {
        await turn()
        background.release?.()
      }
      await disposal
      expect([isHeld(), device.used > 0]).toEqual([false, true])
      end()
      await turn()
      expect(device.used).toBe(0)
    }
  })
}
