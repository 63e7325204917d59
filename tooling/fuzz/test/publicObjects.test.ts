import { bootstrap } from '@shoal/launch'
import { RendezvousServer } from '@shoal/launch/server'
import { Linker } from '@shoal/nvjitlink'
import { Program } from '@shoal/nvrtc'
import { CudaVersion, NcclVersion, NvshmemVersion } from '@shoal/types'
import { expect, test } from 'vitest'
import { expectDescribed, expectDistinct } from '../../../packages/ffi/test/support/publicObjects.js'

process.env['SHOAL_DEVICE'] = 'sim'
const runtime = await import('@shoal/runtime')

const listen = (): Promise<object> =>
  RendezvousServer.listen({ worldSize: 2, secret: Buffer.from('what all ranks know') })

/** Objects of the packages for which no other table exists. */
const kinds: { readonly [name: string]: () => object | Promise<object> } = {
  'nvrtc Program': () => new Program('extern "C" __global__ void f() {}'),
  'nvjitlink Linker': () => new Linker({ architecture: 'sm_90' }),
  'launch RendezvousServer': listen,
  'launch Job': () => bootstrap({ environment: {} }),
  'runtime Stream': () => runtime.Stream.create(),
  'runtime Event': () => runtime.Event.create(),
  'runtime DeviceBuffer': () => runtime.DeviceBuffer.zeros('u8', 4),
  'runtime PinnedBuffer': () => runtime.PinnedBuffer.allocate('u8', 4),
  'runtime ManagedBuffer': () => runtime.ManagedBuffer.allocate('u8', 4),
  'runtime MemoryPool': () => runtime.MemoryPool.create(),
}

test.each(Object.entries(kinds))(
  '%s: two objects are not equal, and serialize to one line of JSON each',
  async (_, make) => {
    const [one, other] = [await make(), await make()]
    expectDistinct(one, other)
    expectDescribed(one)
    for (const object of [one, other] as { close?: () => unknown; dispose?: () => unknown }[]) {
      await object.close?.()
      await object.dispose?.()
    }
    expectDescribed(one)
  },
)

test('two versions are equal if their numbers are equal', () => {
  expect(CudaVersion.from(12080)).toEqual(CudaVersion.from(12080))
  expect(CudaVersion.from(12080)).not.toEqual(CudaVersion.from(12090))
  for (const version of [CudaVersion.from(12080), NcclVersion.from(23007), NvshmemVersion.from(30405)]) {
    expect(() => JSON.stringify({ version })).not.toThrow()
  }
})
