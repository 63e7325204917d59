import { Communicator, NcclMemory, UniqueId } from '@shoal/nccl'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectDescribed, expectDistinct } from '../../ffi/test/support/publicObjects.js'
import { startSoftwareDevice } from './fixtures/device.js'

let communicators: Communicator[]

beforeAll(async () => {
  startSoftwareDevice()
  communicators = await Communicator.initAll([0, 1])
})
afterAll(() => Promise.all(communicators.map((one) => one.destroy())))

test('two communicators and two blocks of memory are not equal, and serialize to one line of JSON each', async () => {
  const memory = [await NcclMemory.allocate(0, 64), await NcclMemory.allocate(0, 64)]
  for (const [one, other] of [communicators, memory]) {
    expectDistinct(one as object, other as object)
    expectDescribed(one as object)
  }
  for (const one of memory) await one.free()
  expectDescribed(memory[0] as object)
})

test('two unique ids are equal if their bytes are equal', () => {
  const id = UniqueId.create()
  expect(UniqueId.fromBytes(id.toBytes())).toEqual(id)
  expectDistinct(id, UniqueId.create())
  expect(JSON.stringify(id)).toBe(`"${id}"`)
})
