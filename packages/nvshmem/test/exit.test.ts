import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

function run(program: string): { readonly status: number | null; readonly stdout: string; readonly took: number } {
  const from = performance.now()
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
    timeout: 20_000,
    env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2', NODE_OPTIONS: '', SHOAL_NVSHMEM_LIBRARY: '' },
  })
  return { status, stdout, took: performance.now() - from }
}

const options = '{ device: 0, rank: 0, worldSize: 2, id: UniqueId.create()'

test('importing the package loads no library', () => {
  const { stdout } = run(`
    import { SymmetricBuffer } from '@shoal/nvshmem'
    import { nvshmem } from '@shoal/nvshmem-sys'
    console.log(typeof SymmetricBuffer, nvshmem.isLoaded)`)
  expect(stdout).toBe('function false\n')
})

test('a process that ends without finalize() ends by itself', () => {
  const { status, stdout } = run(`
    import { Session, UniqueId } from '@shoal/nvshmem'
    const session = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
    await session.allocate('f32', 8)
    console.log('done')`)
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'done\n' })
})

test('a start that was given up keeps no process alive', () => {
  const { status, stdout, took } = run(`
    import { Session, UniqueId } from '@shoal/nvshmem'
    const abort = new AbortController()
    setTimeout(() => abort.abort(), 100)
    await Session.init(${options}, signal: abort.signal }).catch((error) => console.log(error.code))`)
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'SHOAL_ABORTED\n' })
  expect(took).toBeLessThan(10_000)
})

test('a process may exit, with its status, while NVSHMEM waits', () => {
  const { status, stdout } = run(`
    import { Session, UniqueId } from '@shoal/nvshmem'
    Session.init(${options} })
    process.on('exit', () => console.log('handlers run'))
    setTimeout(() => process.exit(7), 200)`)
  expect({ status, stdout }).toEqual({ status: 7, stdout: 'handlers run\n' })
})
