import { expect, test } from 'vitest'
import { recall, remember } from '../src/cache/memory.js'

const data = (ptx: string) => ({
  ptx,
  cubin: undefined,
  ltoIr: undefined,
  optixIr: undefined,
  lowered: {},
  log: '',
  pchHeapRequired: undefined,
})
const isKept = (key: string): boolean => recall(key) !== undefined

test('the memory cache holds 256 results, and drops the least recently used', () => {
  for (let index = 0; index < 256; index += 1) remember(`${index}`, data('a'))
  expect(isKept('0')).toBe(true) // and is now the most recently used
  remember('256', data('a'))
  expect([isKept('1'), isKept('0'), isKept('2'), isKept('256')]).toEqual([false, true, true, true])
})

test('the memory cache holds 32 MiB of results, each at most a quarter of that', () => {
  const mebibyte = 2 ** 20
  const large = data('x'.repeat(8 * mebibyte - 2))
  remember('too large', data('x'.repeat(8 * mebibyte)))
  expect(isKept('too large')).toBe(false)
  for (const key of ['l0', 'l1', 'l2', 'l3']) remember(key, large)
  expect(['l0', 'l1', 'l2', 'l3'].map(isKept)).toEqual([true, true, true, true])
  // Only four fit, so everything older was dropped.
  expect(isKept('256')).toBe(false)
  remember('l4', large)
  expect(['l0', 'l1', 'l4'].map(isKept)).toEqual([false, true, true])
  // An entry that is already kept counts once.
  remember('l4', large)
  expect(isKept('l1')).toBe(true)
})
