import { expect, test } from 'vitest'
import { placesFor } from '../src/bench/collectives/measure.js'

const most = 128 * 2 ** 20

test('calls of a loop move through the memory so that the GPU cache does not hold the data', () => {
  expect(placesFor(16 * 2 ** 20, most)).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((place) => place * 16 * 2 ** 20))
  expect(placesFor(most, most)).toEqual([0])
  expect(placesFor(48 * 2 ** 20, most)).toEqual([0, 48 * 2 ** 20])
})

test('messages below 64 KiB use one place, and larger ones at most 64 places', () => {
  expect(placesFor(65_535, most)).toEqual([0])
  expect(placesFor(65_536, most)).toEqual(Array.from({ length: 64 }, (_, place) => place * 65_536))
  expect(placesFor(8, 8)).toEqual([0])
})

test('each place is aligned, and ends within the memory', () => {
  for (const bytes of [65_537, 100_000, 1_000_001]) {
    const places = placesFor(bytes, 10_000_000)
    expect(places.length).toBe(Math.min(64, Math.floor(10_000_000 / (Math.ceil(bytes / 512) * 512))))
    for (const place of places) {
      expect(place % 512).toBe(0)
      expect(place + bytes).toBeLessThanOrEqual(10_000_000)
    }
  }
})
