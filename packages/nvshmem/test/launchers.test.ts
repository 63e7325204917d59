import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const launched = `
  import { Session } from '@shoal/nvshmem'
  const device = Number(process.env.OMPI_COMM_WORLD_LOCAL_RANK)
  const session = await Session.init({ device, launcher: 'mpi', timeout: 20_000 })
  const { pe, peCount } = session
  const buffer = await session.allocate('i32', 1)
  await session.put(buffer, Int32Array.of(pe), { pe: (pe + 1) % peCount })
  await session.barrierAll()
  console.log(\`\${pe} of \${peCount} got \${(await buffer.toArray())[0]}\`)
  await session.finalize()
`

test('PEs started by mpirun form one session', ({ skip }) => {
  if (spawnSync('mpirun', ['--version']).error !== undefined) return skip('no mpirun on this machine: install Open MPI')
  const words = ['--oversubscribe', '-n', '3', process.execPath, '--input-type=module', '-e', launched]
  const { status, stdout, stderr } = spawnSync('mpirun', words, {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
    timeout: 40_000,
    env: {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: '3',
      NODE_OPTIONS: '',
      // mpirun requires this from root.
      OMPI_ALLOW_RUN_AS_ROOT: '1',
      OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
    },
  })
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout.trim().split('\n').sort()).toEqual(['0 of 3 got 2', '1 of 3 got 0', '2 of 3 got 1'])
})
