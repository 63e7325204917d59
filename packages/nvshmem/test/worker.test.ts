import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const program = `
  import { Worker } from 'node:worker_threads'
  import { Session, UniqueId } from '@shoal/nvshmem'
  const options = () => ({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
  const worker = new Worker(\`
    import('@shoal/nvshmem').then(async ({ Session, UniqueId }) => {
      const { parentPort } = await import('node:worker_threads')
      const session = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
      const buffer = await session.allocate('f32', 2)
      await session.put(buffer, Float32Array.of(3, 4), { pe: 0 })
      parentPort.postMessage(Array.from(await buffer.toArray()))
      await new Promise((resolve) => parentPort.once('message', resolve))
      await session.finalize()
      process.exit()
    })\`, { eval: true, execArgv: [] })
  const values = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  const beside = await Session.init(options()).catch((error) => error.code)
  worker.postMessage('end')
  await new Promise((resolve) => worker.once('exit', resolve))
  console.log(JSON.stringify({ values, beside }))
`

test('a session in a worker works, and is the only one of the process', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
    timeout: 20_000,
    env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1', NODE_OPTIONS: '', SHOAL_NVSHMEM_LIBRARY: '' },
  })
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({ values: [3, 4], beside: 'SHOAL_NVSHMEM_SESSION_EXISTS' })
})
