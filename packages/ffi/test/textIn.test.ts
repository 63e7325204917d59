import { textIn } from '@shoal/ffi'
import { expect, test } from 'vitest'

test.each([
  ['ends at its NUL', [0x48, 0x69, 0, 0x58, 0], 'Hi'],
  ['is all of the bytes where there is no NUL', [0x48, 0x69], 'Hi'],
  ['is empty where the NUL comes first', [0, 0x48], ''],
  ['is empty where there are no bytes', [], ''],
  ['is UTF-8', [0xc5, 0xbe, 0], 'ž'],
])('textIn() reads the text in a field %s', (_what, bytes, text) => {
  expect(textIn(Uint8Array.from(bytes))).toBe(text)
})

test('textIn() requires the field as a Uint8Array', () => {
  expect(() => textIn('text' as never)).toThrow(/^textIn: bytes must be a Uint8Array/)
})
