import assert from 'node:assert/strict'
import {
  allocationGranularity,
  type DescriptorHandle,
  DescriptorSocket,
  DisposedError,
  PhysicalMemory,
  receiveHandle,
  sendHandle,
} from '@shoal/driver'
import type { ConformanceCase } from '../../../suite.js'
import { assertNothingLeft } from '../../../support/leftovers.js'

/** Messages that arrive through a socket. */
export const arrivalCases: readonly ConformanceCase[] = [
  {
    name: 'what comes through a socket and is no handle is refused, and its descriptors are closed',
    async run(t) {
      await assertNothingLeft(t, async () => {
        const [left, right] = DescriptorSocket.pair()
        const unit = allocationGranularity(t.device)
        const physical = PhysicalMemory.create(t.device, unit, { handleTypes: 'posix-fd' })
        const handle = physical.export()
        const good = JSON.stringify(handle)
        const one = [handle.descriptor]
        const cases: readonly (readonly [string, readonly number[]])[] = [
          ['no JSON', one],
          ['no JSON', [...one, ...one]],
          ['null', one],
          [good, [...one, ...one]],
          [good, []],
          [good.replace('"memory"', '"pool"'), one],
          [good.replace('posix-fd', 'fabric'), one],
          [good.replace(String(unit), '-1'), one],
          [JSON.stringify({ type: 'fabric', content: 'memory', byteLength: unit, handle: 'AAAA' }), []],
        ]
        for (const [text, descriptors] of cases) {
          await left.send({ bytes: Buffer.from(text), descriptors })
          await assert.rejects(receiveHandle(right, 'memory'), (error) => {
            return error instanceof TypeError || error instanceof RangeError
          })
        }
        await sendHandle(left, handle)
        handle.dispose()
        const arrived = (await receiveHandle(right, 'memory')) as DescriptorHandle<'memory'>
        PhysicalMemory.import(t.device, arrived).dispose()
        arrived.dispose()
        await assert.rejects(sendHandle(left, handle), DisposedError)
        await assert.rejects(sendHandle(left, {} as never), TypeError)
        await assert.rejects(receiveHandle(right, 'memory', { timeout: 20 }), { name: 'TimeoutError' })
        left.dispose()
        right.dispose()
        physical.dispose()
      })
    },
  },
]
