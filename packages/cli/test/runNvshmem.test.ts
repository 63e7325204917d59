import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { folder, start } from './support/run.js'

const program = fileURLToPath(new URL('fixtures/pes.mjs', import.meta.url))

test('ranks that start NVSHMEM with only a device are PEs of one job', async () => {
  const environment = { SHOAL_DEVICE: 'sim', TMPDIR: folder }
  const { code, output } = await start(['-n', '3', '--no-prefix', program], environment).end
  expect(code).toBe(0)
  expect(output.trim().split('\n').sort()).toEqual(['PE 0 of 3 got 2', 'PE 1 of 3 got 0', 'PE 2 of 3 got 1'])
  // Neither the file with the id nor its draft remains.
  expect(readdirSync(folder)).toEqual([])
})

test('a single rank is a job of one PE, and NVSHMEM_BOOTSTRAP takes precedence', async () => {
  const environment = { SHOAL_DEVICE: 'sim', TMPDIR: folder }
  expect((await start(['-n', '1', '--no-prefix', program], environment).end).output).toBe('PE 0 of 1 got 0\n')
  const named = { ...environment, NVSHMEM_BOOTSTRAP: 'PMI' }
  expect((await start(['-n', '2', '--no-prefix', program], named).end).output).toBe('PE 0 of 1 got 0\n'.repeat(2))
})

function startAlone(environment: NodeJS.ProcessEnv, ...words: string[]): string {
  const env = { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2', LOCAL_RANK: '0', ...environment }
  return spawnSync(process.execPath, [program, ...words], { env, encoding: 'utf8' }).stdout
}

test('ranks of a launcher unknown to NVSHMEM are refused instead of becoming jobs of one', () => {
  expect(startAlone({ RANK: '0', WORLD_SIZE: '2' })).toMatch(
    /^TypeError: Session\.init: rank, worldSize and id must be given: RANK and WORLD_SIZE say that this is rank 0 of 2/,
  )
  expect(startAlone({ RANK: '0', WORLD_SIZE: '1' })).toBe('PE 0 of 1 got 0\n')
})

test('Session.init times out if rank 0 starts no session', () => {
  const environment = { RANK: '1', WORLD_SIZE: '2', SHOAL_NVSHMEM_ID: `${folder}/none` }
  expect(startAlone(environment, 'wait')).toBe('TimeoutError: Session.init did not end within 300 ms.\n')
})

test('a second process of rank 0 gets the error that the session was already started', () => {
  // A job of two ranks, of which the first waits for the second in vain.
  const environment = { RANK: '0', WORLD_SIZE: '2', SHOAL_NVSHMEM_ID: `${folder}/id` }
  expect(startAlone(environment, 'wait')).toMatch(/^TimeoutError: Session\.init did not end within 300 ms/)
  expect(startAlone(environment, 'wait')).toMatch(
    /another process of this rank has started the session of this shoal run/,
  )
})
