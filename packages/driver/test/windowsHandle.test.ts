import { inspect } from 'node:util'
import { WindowsHandle } from '@shoal/driver/shared'
import { expect, test } from 'vitest'
import { memoryFacts } from './support/handleFacts.js'

test('WindowsHandle holds the number of a handle, and dispose() does not close it', () => {
  const handle = new WindowsHandle('win32', 12n, memoryFacts)
  handle.dispose()
  expect(handle).toMatchObject({ type: 'win32', value: 12n, ...memoryFacts })
  expect(handle.toJSON()).toEqual({ type: 'win32', ...memoryFacts })
})

test.each([
  ['posix-fd', 12n, TypeError, "type must be 'win32' or 'win32-kmt', not 'posix-fd'"],
  ['win32', 12, TypeError, 'value must be a bigint, not 12'],
  ['win32', -1n, RangeError, 'value must be a bigint of 64 bits without a sign, not -1n'],
])('WindowsHandle refuses %s and %s', (type, value, kind, message) => {
  const make = (): unknown => new WindowsHandle(type as 'win32', value as bigint, memoryFacts)
  expect(make).toThrow(new kind(`WindowsHandle: ${message}`))
})

test('WindowsHandle is printed in one line', () => {
  const handle = new WindowsHandle('win32-kmt', 12n, { content: 'pool', byteLength: 0 })
  expect(inspect(handle)).toBe("WindowsHandle { type: 'win32-kmt', content: 'pool', byteLength: 0 }")
})
