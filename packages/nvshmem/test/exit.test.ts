import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

interface Ended {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly took: number
}

function run(program: string): Ended {
  const from = performance.now()
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
    timeout: 20_000,
    env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2', NODE_OPTIONS: '' },
  })
  return { status, signal, stdout, stderr, took: performance.now() - from }
}

const options = '{ device: 0, rank: 0, worldSize: 2, id: UniqueId.create()'

test('importing @shoal/nvshmem loads no library', () => {
  const { stdout } = run(`
    import { SymmetricBuffer } from '@shoal/nvshmem'
    import { nvshmem } from '@shoal/nvshmem-sys'
    console.log(typeof SymmetricBuffer, nvshmem.isLoaded)`)
  expect(stdout).toBe('function false\n')
})

test('a process that does not call finalize() exits by itself', () => {
  const { status, stdout } = run(`
    import { Session, UniqueId } from '@shoal/nvshmem'
    const session = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
    await session.allocate('f32', 8)
    console.log('done')`)
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'done\n' })
})

test('an aborted Session.init does not keep the process alive', () => {
  const { status, stdout, took } = run(`
    import { Session, UniqueId } from '@shoal/nvshmem'
    const abort = new AbortController()
    setTimeout(() => abort.abort(), 100)
    await Session.init(${options}, signal: abort.signal }).catch((error) => console.log(error.code))`)
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'SHOAL_ABORTED\n' })
  expect(took).toBeLessThan(60_000)
})

test('a process can exit with its status while NVSHMEM waits', () => {
  const { status, stdout } = run(`
    import { Session, UniqueId } from '@shoal/nvshmem'
    Session.init(${options} })
    process.on('exit', () => console.log('handlers run'))
    setTimeout(() => process.exit(7), 200)`)
  expect({ status, stdout }).toEqual({ status: 7, stdout: 'handlers run\n' })
})

const start = `
  import { Session, UniqueId } from '@shoal/nvshmem'
  const session = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
  const buffer = await session.allocate('u8', 2 ** 24)
  process.on('exit', (status) => console.log('exit', status))`

describe('a process can exit with its status at any stage:', () => {
  test.for([
    [
      'while it starts',
      "import { Session, UniqueId } from '@shoal/nvshmem'; Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })",
    ],
    ['while it allocates', `${start}; session.allocate('f32', 2 ** 20, { zeroed: true })`],
    [
      'while it puts',
      `${start}; for (let i = 0; i < 4; i += 1) session.put(buffer, new Uint8Array(2 ** 24), { pe: 0 })`,
    ],
    ['in a barrier', `${start}; session.barrierAll()`],
    ['while it gives memory back', `${start}; buffer.dispose()`],
    ['while it ends the session', `${start}; session.finalize()`],
  ] as const)('%s', ([, program]) => {
    const { status, signal, stderr } = run(`${program}\nprocess.exit(5)`)
    expect({ status, signal, stderr: stderr.replace(/^shoal: software device.*\n/, '') }).toEqual({
      status: 5,
      signal: null,
      stderr: '',
    })
  })

  test('with an uncaught error', () => {
    const { status, stdout, stderr } = run(`${start}
      session.barrierAll()
      setImmediate(() => { throw new Error('boom') })`)
    expect({ status, stdout }).toEqual({ status: 1, stdout: 'exit 1\n' })
    expect(stderr).toContain('Error: boom')
  })

  test('and use the session in its last exit handler', () => {
    const { status, stdout } = run(`${start}
      process.on('exit', () => { session.barrierAllSync(); console.log(buffer.toArraySync().length) })`)
    expect({ status, stdout }).toEqual({ status: 0, stdout: `exit 0\n${2 ** 24}\n` })
  })
})

describe('a signal to a process while NVSHMEM waits for a missing PE', () => {
  const waiting = `
    import { Session, UniqueId } from '@shoal/nvshmem'
    Session.init(${options} }).catch((error) => console.log(error.code))
    process.on('exit', (status) => console.log('exit', status))
    setTimeout(() => process.kill(process.pid, 'SIGTERM'), 200)`

  test('ends the process if no handler is installed', () => {
    expect(run(waiting)).toMatchObject({ status: null, signal: 'SIGTERM' })
  })

  test('reaches a handler, which may exit or abort the wait', () => {
    expect(run(`${waiting}; process.on('SIGTERM', () => process.exit(9))`)).toMatchObject({
      status: 9,
      stdout: 'exit 9\n',
    })
    const givingUp = waiting.replace('worldSize: 2,', 'worldSize: 2, signal: lost.signal,')
    const handled = `const lost = new AbortController(); process.once('SIGTERM', () => lost.abort()); ${givingUp}`
    expect(run(handled)).toMatchObject({ status: 0, stdout: 'SHOAL_ABORTED\nexit 0\n' })
  })
})
