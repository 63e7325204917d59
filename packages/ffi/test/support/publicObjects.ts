import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'

/** Checks that a public object has a short text in JSON and cannot be cloned. */
export function expectDescribed(object: object): void {
  const text = JSON.stringify({ at: object })
  expect(text.length, text).toBeLessThan(250)
  expect(text).not.toMatch(/_[a-z]/)
  expect(() => structuredClone(object)).toThrow(/an object of Shoal, which belongs to its thread/)
}

/** Checks that Node.js, Vitest and Jest treat two public objects for different things as unequal. */
export function expectDistinct(one: object, other: object): void {
  expect(isDeepStrictEqual(one, one)).toBe(true)
  expect(one).toEqual(one)
  expect(isDeepStrictEqual(one, other)).toBe(false)
  expect(one).not.toEqual(other)
}
