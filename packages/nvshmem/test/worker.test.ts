import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
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

const run = (source: string): SpawnSyncReturns<string> =>
  spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
    timeout: 20_000,
    env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1', NODE_OPTIONS: '' },
  })

test('a session works in a worker, and is the only one of the process', () => {
  const { status, stdout, stderr } = run(program)
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({ values: [3, 4], beside: 'SHOAL_NVSHMEM_SESSION_EXISTS' })
})

test.for([
  ['is terminated', "setInterval(() => parentPort.postMessage('up'), 10)", 'await worker.terminate()', 1],
  ['exits', 'process.exit(3)', '', 3],
  ['fails', "throw new Error('in the worker')", '', 1],
] as const)('after a worker %s in a barrier, the process cannot start another session', ([, ending, then, code]) => {
  const ended = `
    import { Worker } from 'node:worker_threads'
    import { Session, UniqueId } from '@shoal/nvshmem'
    const worker = new Worker(\`
      Promise.all([import('@shoal/nvshmem'), import('node:worker_threads')]).then(async ([nvshmem, { parentPort }]) => {
        const { Session, UniqueId } = nvshmem
        const session = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
        session.barrierAll()
        ${ending}
      })\`, { eval: true, execArgv: [] })
    worker.on('error', () => undefined)
    const exit = new Promise((resolve) => worker.once('exit', resolve))
    ${then === '' ? '' : `await new Promise((resolve) => worker.once('message', resolve)); ${then}`}
    const code = await exit
    const next = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() }).catch((error) => error.code)
    console.log(JSON.stringify({ code, next }))`
  const { status, stdout, stderr } = run(ended)
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({ code, next: 'SHOAL_NVSHMEM_SESSION_EXISTS' })
})
