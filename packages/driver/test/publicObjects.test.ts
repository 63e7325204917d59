import { afterEach, expect, test } from 'vitest'
import { expectDescribed, expectDistinct } from '../../ffi/test/support/publicObjects.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, Module, prepareCopies } = await import('@shoal/driver')
const { DeviceResource } = await import('@shoal/driver/context')
const { ProcessCheckpoint } = await import('@shoal/driver/diagnostics')
const { toDLPack } = await import('@shoal/driver/dlpack')
const { emptyNode, Graph } = await import('@shoal/driver/graph')
const { TensorMap } = await import('@shoal/driver/texture')
const { kinds } = (await import('./fixtures/everyObject.mjs' as string)) as {
  readonly kinds: { readonly [name: string]: (device: unknown) => readonly (Disposable & object)[] }
}

const device = Device.get(0)
afterEach(() => device.dispose())

test.each(Object.entries(kinds))(
  'two objects of %s are not equal, and serialize to one line of JSON each',
  (_, make) => {
    const [some, others] = [make(device), make(device)]
    for (const [index, one] of some.entries()) {
      expectDistinct(one, others[index] as object)
      expectDescribed(one)
    }
    for (const one of [...some, ...others]) one[Symbol.dispose]()
    for (const one of some) expectDescribed(one)
  },
)

const ptx = '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n'
const others: { readonly [name: string]: () => object } = {
  Context: () => device.primaryContext,
  Kernel: () => Module.loadSync(device, ptx).kernel('nothing', []),
  PreparedLaunch: () => Module.loadSync(device, ptx).kernel('nothing', []).prepare({ grid: 1, block: 1 }),
  PreparedCopies: () => {
    const [from, to] = [DeviceBuffer.zeros(device, 'u8', 4), DeviceBuffer.zeros(device, 'u8', 4)]
    return prepareCopies(device, [{ source: from, target: to }])
  },
  DeviceResource: () => DeviceResource.of(device),
  NodeDescription: () => emptyNode(),
  GraphNode: () => Graph.create(device).add(emptyNode()),
  DLPackCapsule: () => toDLPack(DeviceBuffer.zeros(device, 'u8', 4)),
  TensorMap: () => TensorMap.tiled(DeviceBuffer.zeros(device, 'f32', 64), { dimensions: [8, 8], box: [4, 4] }),
}

test.each(Object.entries(others))(
  '%s: two objects are not equal, and serialize to one line of JSON each',
  (name, make) => {
    const [one, other] = [make(), name === 'Context' ? Device.get(1).primaryContext : make()]
    expectDistinct(one, other)
    if (name !== 'GraphNode') expectDescribed(one)
    expect(JSON.stringify(one).length).toBeLessThan(250)
  },
)

test('two devices are not equal, and serialize to JSON with their names', () => {
  expectDistinct(device, Device.get(1))
  expectDescribed(device)
  expect(JSON.stringify({ at: device })).toBe(`{"at":"Device 0 (${device.name})"}`)
  expectDescribed(new ProcessCheckpoint(process.pid))
})
