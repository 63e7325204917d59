import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DisposedError } = await import('@shoal/types')
const { DeviceBuffer, Stream } = await import('@shoal/driver/shared')
const { TestDevice } = await import('./support/testDevice.js')

const device = new TestDevice(0)
const defaults = {
  accessPolicyWindow: undefined,
  synchronizationPolicy: 'auto',
  priority: 0,
  memorySynchronizationDomainMap: { default: 0, remote: 1 },
  memorySynchronizationDomain: 'default',
}

describe('Stream.attributes', () => {
  test('can be read, set and copied', () => {
    using one = Stream.create(device, { nonBlocking: true, priority: -1 })
    using two = Stream.create(device, { nonBlocking: true })
    using memory = DeviceBuffer.zeros(device, 'u8', 4096)
    expect(one.attributes).toEqual({ ...defaults, priority: -1 })
    const window = { memory, hitRatio: 0.5, hit: 'persisting', miss: 'streaming' } as const
    expect(one.setAttributes({ accessPolicyWindow: window, synchronizationPolicy: 'spin', priority: -3 })).toBe(one)
    const { memory: _, ...rest } = window
    const changed = {
      ...defaults,
      accessPolicyWindow: { ...rest, address: memory.address, byteLength: 4096 },
      synchronizationPolicy: 'spin',
      priority: -3,
    }
    expect(one.attributes).toEqual(changed)
    expect(one.priority).toBe(-3)
    expect(two.attributes).toEqual(defaults)
    expect(two.copyAttributes(one)).toBe(two)
    expect(two.attributes).toEqual(changed)
    two.setAttributes({
      memorySynchronizationDomain: 'remote',
      memorySynchronizationDomainMap: { default: 1, remote: 0 },
    })
    expect(two.attributes).toMatchObject({
      memorySynchronizationDomain: 'remote',
      memorySynchronizationDomainMap: { default: 1, remote: 0 },
      priority: -3,
    })
    expect(one.attributes.memorySynchronizationDomain).toBe('default')
  })

  test('refuse wrong arguments by name', () => {
    using one = Stream.create(device)
    using other = Stream.create(new TestDevice(1))
    for (const [act, message] of [
      [() => one.setAttributes(3 as never), /^Stream.setAttributes: attributes must be a plain object/],
      [
        () => one.setAttributes({ cooperative: true } as never),
        /attributes must have only the keys accessPolicyWindow/,
      ],
      [() => one.setAttributes({ synchronizationPolicy: 'fast' as never }), /synchronizationPolicy must be 'auto'/],
      [() => one.setAttributes({ priority: 0.5 }), /priority must be an integer/],
      [() => one.setAttributes({ accessPolicyWindow: {} as never }), /accessPolicyWindow/],
      [() => one.copyAttributes(other), /^Stream.copyAttributes: stream must be one of device 0/],
      [() => one.copyAttributes(undefined as never), /from must be a stream, not undefined/],
      [() => one.copyAttributes(4 as never), /stream must be a stream/],
    ] as const) {
      expect(act).toThrow(message)
    }
    expect(one.attributes).toEqual(defaults)
    const gone = Stream.create(device)
    gone.dispose()
    expect(() => gone.attributes).toThrow(DisposedError)
    expect(() => gone.setAttributes({})).toThrow(DisposedError)
    expect(() => one.copyAttributes(gone)).toThrow(DisposedError)
  })
})
