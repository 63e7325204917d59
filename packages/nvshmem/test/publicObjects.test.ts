import { UniqueId } from '@shoal/nvshmem'
import { expect, test } from 'vitest'
import { expectDescribed, expectDistinct } from '../../ffi/test/support/publicObjects.js'
import { onePe } from './fixtures/onePe.js'

const pe = onePe()

test('two objects of a session are never equal, and serialize to one line of JSON each', async () => {
  const { session } = pe
  const buffers = [await session.allocate('f32', 8), await session.allocate('f32', 8)] as const
  expectDistinct(...buffers)
  expectDistinct(buffers[0].slice(0, 2), buffers[0].slice(2, 4))
  expectDistinct(session.world, session.node)
  for (const one of [session, session.world, session.atomics, session.signals, session.deviceCode, ...buffers]) {
    expectDescribed(one)
  }
})

test('two unique ids are equal if their bytes are equal', () => {
  const id = UniqueId.create()
  expect(UniqueId.fromBytes(id.toBytes())).toEqual(id)
  expectDistinct(id, UniqueId.create())
})
