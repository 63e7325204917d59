import { expect, test, vi } from 'vitest'
import { type End, startRanks } from '../../testing/program.js'

function run(pes: number, program: string): Promise<End> {
  return startRanks(pes, new URL(`../dist/${program}.js`, import.meta.url)).end
}

test.each([1, 2, 5])('%i PEs: every block reaches every PE', { timeout: 60_000 }, async (pes) => {
  const { code, output, errors } = await run(pes, 'main')
  expect(
    output.match(new RegExp(`${pes * 10_007} elements around the ring, 0 wrong`, 'g')),
    output + errors,
  ).toHaveLength(pes)
  expect(code, output + errors).toBe(0)
})

test('without NVSHMEM headers the program names the folder it searched', { timeout: 60_000 }, async () => {
  vi.stubEnv('NVSHMEM_HOME', '/nowhere')
  const { code, errors } = await run(1, 'kernel')
  vi.unstubAllEnvs()
  expect(errors).toContain('no headers or device library of NVSHMEM in /nowhere: NVSHMEM_HOME names another folder')
  expect(code).not.toBe(0)
})
