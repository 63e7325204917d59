import { expect, test } from 'vitest'

test('arrays of one type with the same bytes are equal, including NaN', () => {
  expect(new Float32Array([1, Number.NaN])).toEqual(new Float32Array([1, Number.NaN]))
  expect({ data: [new BigInt64Array([3n])] }).toEqual({ data: [new BigInt64Array([3n])] })
  expect(Buffer.from('abc').subarray(1)).toEqual(Buffer.from('bc'))
})

test.each([
  ['another element', new Float32Array([1, 2]), new Float32Array([1, 3])],
  ['another length', new Float32Array(2), new Float32Array(3)],
  ['another type', new Uint8Array(4), new Int8Array(4)],
  ['another zero', new Float64Array([0]), new Float64Array([-0])],
  ['another element of one inside', { data: new Uint8Array([1]) }, { data: new Uint8Array([2]) }],
])('%s makes arrays unequal', (_, one, other) => {
  expect(one).not.toEqual(other)
})
