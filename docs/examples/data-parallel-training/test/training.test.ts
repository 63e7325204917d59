import { expect, test } from 'vitest'
import { startRanks } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)

test.each([1, 3])('training with %i ranks reaches the parameters of a single process', async (ranks) => {
  const { code, output, errors } = await startRanks(ranks, main).end
  expect(output).toContain(`, ${ranks} ranks`)
  expect(output).toContain('parameters of 0 ranks differ')
  expect(output).toMatch(/largest distance to training in one process: (0|\d\.\de-1\d)/)
  expect(code, output + errors).toBe(0)
})
