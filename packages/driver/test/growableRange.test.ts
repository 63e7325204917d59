import { inspect } from 'node:util'
import { DisposedError, memoryProtocol } from '@shoal/types'
import { beforeEach, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { allocationGranularity, GrowableRange } = await import('@shoal/driver/shared')
const { keepWhile } = await import('@shoal/driver/basics')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)
const unit = allocationGranularity(device)

beforeEach(() => expect([device.used, second.used]).toEqual([0, 0]))

describe('GrowableRange.reserve', () => {
  test('reserves addresses but no memory, for a device or its context', () => {
    for (const owner of [second, second.primaryContext]) {
      using range = GrowableRange.reserve(owner, { maximumBytes: unit * 8 - 5 })
      expect([range.maximumBytes, range.byteLength, range.capacity]).toEqual([unit * 8, 0, 0])
      expect(second.used).toBe(0)
      range.resize(1)
      expect(second.used).toBe(allocationGranularity(second, { granularity: 'recommended' }))
      expect(range[memoryProtocol]).toMatchObject({ deviceOrdinal: 1, byteLength: 1, address: range.address })
    }
  })

  test('gives other devices access from the start', () => {
    const access = [{ place: second, access: 'read' }] as const
    using range = GrowableRange.reserve(device, { maximumBytes: unit, access })
    range.resize(1)
    expect(range[memoryProtocol]).toMatchObject({ deviceOrdinal: 0, byteLength: 1 })
  })

  const keys = 'maximumBytes, stepBytes, access, handleTypes, gpuDirectRdma, compressible'
  test.each([
    [device, undefined, 'options must be a plain object such as { maximumBytes, stepBytes, access }, not undefined'],
    [device, {}, `maximumBytes must be an integer from 1 to ${2 ** 47}, not undefined`],
    [device, { maximumBytes: unit, stepBytes: '1' }, "stepBytes must be an integer from 1 to 2^53 - 1, not '1'"],
    [
      device,
      { maximumBytes: unit, step: 1 },
      `options must have only the keys ${keys}, not 'step'; did you mean 'stepBytes'?`,
    ],
    [
      device,
      { maximumBytes: unit, access: [{ place: second, access: 'all' }] },
      "access[0].access must be 'none', 'read' or 'readWrite', not 'all'",
    ],
    ['host', { maximumBytes: unit }, "device must be a Device or a Context, not 'host'"],
  ])('refuses %o with %o', (owner, options, message) => {
    expect(() => GrowableRange.reserve(owner as typeof device, options as { maximumBytes: number })).toThrow(
      new TypeError(`GrowableRange.reserve: ${message}`),
    )
  })
})

describe('GrowableRange.resize', () => {
  test('grows by steps, and frees whole pieces', () => {
    using range = GrowableRange.reserve(device, { maximumBytes: unit * 8 - 5, stepBytes: unit + 1 })
    const { address } = range
    const steps = [
      [1, 2],
      [unit * 2, 2],
      [unit * 2 + 1, 4],
      [unit * 7, 7],
      [unit * 8, 8],
      [unit * 7, 7],
      [unit * 4 + 1, 7],
      [unit * 4, 4],
      [0, 0],
    ] as const
    for (const [byteLength, granules] of steps) {
      range.resize(byteLength)
      expect([range.byteLength, range.capacity, range.address]).toEqual([byteLength, granules * unit, address])
      expect(device.used).toBe(granules * unit)
    }
    expect(() => range.resize(unit * 8 + 1)).toThrow(
      new RangeError(`GrowableRange.resize: byteLength must be an integer from 0 to ${unit * 8}, not ${unit * 8 + 1}`),
    )
  })
})

describe('GrowableRange.dispose', () => {
  test('frees all memory, and later uses throw', () => {
    const range = GrowableRange.reserve(device, { maximumBytes: unit * 4, stepBytes: unit }).resize(unit * 3)
    range.dispose()
    range.dispose()
    expect(device.used).toBe(0)
    expect(() => range.resize(1)).toThrow(DisposedError)
    expect(() => range.address).toThrow(DisposedError)
    expect(() => range[memoryProtocol]).toThrow(DisposedError)
  })

  test('runs on a native thread with await using', async () => {
    {
      await using range = GrowableRange.reserve(device, { maximumBytes: unit * 4, stepBytes: unit })
      range.resize(1).resize(unit * 2)
    }
    expect(device.used).toBe(0)
  })
})

test('GrowableRange is printed in one line, also after dispose()', () => {
  const range = GrowableRange.reserve(device, { maximumBytes: unit * 4, stepBytes: unit }).resize(5)
  const address = `0x${range.address.toString(16)}`
  expect(inspect(range)).toBe(
    `GrowableRange { address: ${address}, byteLength: 5, capacity: ${unit}, maximumBytes: ${unit * 4} }`,
  )
  range.dispose()
  expect(inspect(range)).toBe(
    `GrowableRange { address: ${address}, byteLength: 5, capacity: 0, maximumBytes: ${unit * 4}, disposed: true }`,
  )
})

test('memory used by a call on a native thread is kept until the call returns', async () => {
  using range = GrowableRange.reserve(device, { maximumBytes: unit * 8, stepBytes: unit })
  range.resize(1)
  // This needs a second piece.
  range.resize(range.capacity + 1)
  const full = range.capacity
  let end: () => void = () => undefined
  const call = new Promise<void>((resolve) => {
    end = resolve
  })
  keepWhile([range], call)
  range.resize(1)
  expect([range.byteLength, range.capacity]).toEqual([1, full])
  end()
  await call
  await new Promise((resolve) => setImmediate(resolve))
  range.resize(0)
  expect(range.capacity).toBe(0)
})
