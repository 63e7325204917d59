import { inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceResource } = await import('@shoal/driver/context')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const second = new TestDevice(1)

afterAll(() => {
  device.dispose()
  second.dispose()
})

describe('DeviceResource', () => {
  test('covers the whole device, and can be split', () => {
    const all = DeviceResource.of(device)
    expect(all.multiprocessors).toBe(device.attribute('MULTIPROCESSOR_COUNT'))
    expect([all.device, all.minimumPartition, all.alignment]).toEqual([device, 2, 2])
    expect(inspect(all)).toBe('DeviceResource { device: 0, multiprocessors: 4 }')
    const counts = ({ groups, remaining }: ReturnType<typeof all.split>): unknown => [
      groups.map(({ multiprocessors }) => multiprocessors),
      remaining?.multiprocessors,
    ]
    // As many groups as possible, each rounded up.
    expect(counts(all.split(1))).toEqual([[2, 2], undefined])
    expect(counts(all.split(2, { groups: 1 }))).toEqual([[2], 2])
    expect(counts(all.split(3))).toEqual([[4], undefined])
    expect(counts(all.split(1, { groups: 4, ignoreCoscheduling: true }))).toEqual([[2, 2], undefined])
  })

  test('refuses wrong arguments by name', () => {
    const all = DeviceResource.of(device)
    for (const [act, message] of [
      [() => DeviceResource.of(5 as never), /^DeviceResource.of: owner must be a Device or a Context/],
      [() => all.split(0), /^DeviceResource.split: multiprocessors must be an integer from 1 to 4, not 0/],
      [() => all.split(5), /multiprocessors must be an integer from 1 to 4, not 5/],
      [() => all.split(1.5), /multiprocessors must be an integer/],
      [() => all.split(1, { groups: 0 }), /groups must be an integer from 1/],
      [() => all.split(1, { ignoreCoscheduling: 1 as never }), /ignoreCoscheduling must be a boolean/],
      [() => all.split(1, { parts: 1 } as never), /options must have only the keys/],
    ] as const) {
      expect(act).toThrow(message)
    }
    const both = { ignoreCoscheduling: true, maxPotentialClusterSize: true }
    expect(() => all.split(3, both)).toThrow('CUDA_ERROR_INVALID_VALUE')
    // A group cannot be split again, except as the resource of a green context.
    const [part] = all.split(2).groups
    expect(() => part?.split(1)).toThrow('CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION')
  })
})
