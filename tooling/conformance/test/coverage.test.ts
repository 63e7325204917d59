import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] ??= 'sim'
const { Random, rawTrials } = await import('@shoal/conformance')

test('every per-type NVSHMEM function is tested by name', () => {
  const file = new URL('../../bindgen/spec/nvshmem.json', import.meta.url)
  const spec = JSON.parse(readFileSync(file, 'utf8')) as { functions: { name: string; type?: string }[] }
  const typed = spec.functions.filter(({ type }) => type !== undefined).map(({ name }) => name)
  expect(typed.length).toBeGreaterThan(1400)
  expect(
    rawTrials(new Random(1))
      .map(({ name }) => name)
      .sort(),
  ).toEqual(typed.sort())
})
