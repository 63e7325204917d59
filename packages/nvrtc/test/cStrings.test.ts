import { readCString } from '@shoal/ffi'
import { CStrings } from '@shoal/nvrtc/basics'
import { expect, test } from 'vitest'

test('C strings lie in one block of memory, each with its NUL, after the table of their addresses', () => {
  const texts = ['one', '', 'zwölf', '🙂']
  const strings = new CStrings(texts)
  expect(texts.map((_, index) => readCString(strings.text(index)))).toEqual(texts)
  expect(Array.from(strings.memory.u64.slice(0, 4))).toEqual(texts.map((_, index) => strings.text(index)))
  expect([strings.table(), strings.table(2)]).toEqual([strings.memory.address, strings.memory.address + 16n])
  expect(strings.memory.byteLength).toBe(4 * 8 + 4 + 1 + 7 + 5)
  strings.dispose()
})

test('an empty list of C strings is a valid table', () => {
  const strings = new CStrings([])
  expect(strings.table()).toBe(strings.memory.address)
  strings.dispose()
})
