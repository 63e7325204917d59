import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { compileBlockingExitLibrary } from './fixtures/blockingExitLibrary.js'
import { type End, runJob } from './fixtures/job.js'

const library = compileBlockingExitLibrary()

interface Ended {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

const folder = scratchFolder()
let runs = 0

/** Waits until NVSHMEM would delay the end of the process, even on a busy machine. */
const inside = `
  const inside = async () => {
    const { existsSync } = process.getBuiltinModule('node:fs')
    while (!existsSync(process.env.TELL_INSIDE)) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const lost = new AbortController()`

function run(program: string, more: NodeJS.ProcessEnv = {}): Ended {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
    // A hanging process waits forever. Any other may still be slow on a busy machine.
    timeout: 120_000,
    killSignal: 'SIGKILL',
    env: {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: '2',
      NODE_OPTIONS: '',
      SHOAL_NVSHMEM_LIBRARY: library,
      TELL_UNLOADED: '1',
      TELL_INSIDE: join(folder, `inside-${(runs += 1)}`),
      ...more,
    },
  })
  return { status, stdout, stderr }
}

const options = (worldSize: number): string => `{ device: 0, rank: 0, worldSize: ${worldSize}, id: UniqueId.create() }`

/** A worker that reports when it waits for a PE that never joins, or when it has cancelled that wait. */
const waitingWorker = (givesUp: boolean): string => `
  import { Worker } from 'node:worker_threads'
  const worker = new Worker(\`
    import('@shoal/nvshmem').then(async ({ Session, UniqueId }) => {
      ${inside}
      const { parentPort } = await import('node:worker_threads')
      const start = Session.init({ ...${options(2)}, signal: lost.signal })
      start.catch(() => parentPort.postMessage('gave up'))
      await inside()
      ${givesUp ? 'lost.abort()' : "setTimeout(() => parentPort.postMessage('waits'), 1000)"}
    })\`, { eval: true, execArgv: [] })
  await new Promise((resolve) => worker.once('message', resolve))
  process.on('exit', () => console.log('handlers run'))`

describe('a process that exits while NVSHMEM waits in a call that never returns', () => {
  test.for([
    ['calls process.exit()', 'await inside(); process.exit(7)', 7],
    ['sets its exit code', 'process.exitCode = 7; await inside(); lost.abort()', 7],
    ['ends by itself', 'await inside(); lost.abort(); await start.catch(() => undefined)', 0],
    ['fails', 'await inside(); setTimeout(() => { throw new Error("wrong") }, 10)', 1],
  ] as const)('exits with the right status when it %s', ([, ending, status]) => {
    const program = `
      import { Session, UniqueId } from '@shoal/nvshmem'
      ${inside}
      const start = Session.init({ ...${options(2)}, signal: lost.signal })
      start.catch(() => undefined)
      process.on('exit', () => console.log('handlers run'))
      ${ending}`
    expect(run(program)).toMatchObject({ status, stdout: 'handlers run\n' })
  })

  test('applies changes of the status by later exit handlers', () => {
    const program = `
      import { Session, UniqueId } from '@shoal/nvshmem'
      ${inside}
      Session.init(${options(2)})
      process.on('exit', () => { process.exitCode = 9 })
      await inside()
      process.exit()`
    expect(run(program).status).toBe(9)
  })

  test.for([false, true])('a waiting worker (aborted: %s) delays neither its own end nor the process', (givesUp) => {
    expect(run(`${waitingWorker(givesUp)}\nprocess.exit(7)`)).toMatchObject({ status: 7, stdout: 'handlers run\n' })
    expect(run(`${waitingWorker(givesUp)}\nawait worker.terminate(); console.log('worker ended')`)).toMatchObject({
      status: 0,
      stdout: 'worker ended\nhandlers run\n',
    })
  })

  test('without a hanging call, the exit handlers of C run as usual', () => {
    const program = `
      import { Session, UniqueId } from '@shoal/nvshmem'
      const session = await Session.init(${options(1)})
      await session.barrierAll()
      await session.finalize()`
    const { status, stderr } = run(program)
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringMatching(/unloaded\n$/) })
  })

  test.for(['hangsInBarrier', 'bySignal', 'hangsInFinalize'])('%s: the remaining PE exits', async (program) => {
    const [left, other] = (await runJob(`faults.${program}`, 2, {
      environment: { SHOAL_NVSHMEM_LIBRARY: library },
      limit: 120_000,
      // Not earlier, because the software device ends a call whose PE has died.
      onSaid: (_, __, job) => void job[0]?.once('exit', () => job[1]?.kill('SIGKILL')),
    })) as [End, End]
    expect(other.signal).toBe('SIGKILL')
    expect({ code: left.code, signal: left.signal, failed: left.failed }).toEqual({
      code: 0,
      signal: null,
      failed: undefined,
    })
  })
})

describe('a process stays alive while a caller waits behind an aborted call', () => {
  test.each([
    ['a call with separate memory', 'session.put(here, source, { pe: 0 })'],
    ['a call that only queues something', 'session.putOnStream(here, source, { pe: 0, stream })'],
  ])('for %s', (_, call) => {
    // The second call starts when no caller waits for it any more.
    const program = `
      import { Device, DeviceBuffer } from '@shoal/driver'
      import { Session, UniqueId } from '@shoal/nvshmem'
      const session = await Session.init(${options(1)})
      const [device, here] = [Device.get(0), await session.allocate('u8', 64)]
      const [stream, source] = [device.createStream(), DeviceBuffer.zeros(device, 'u8', 64)]
      const first = session.quiet()
      const second = session.quiet({ timeout: 10 }).catch(({ name }) => name)
      const third = ${call}
      console.log(await second, await first)
      await third
      console.log('waited')
      await session.finalize()`
    expect(run(program, { FIRST_QUIET: '200', LATER_QUIETS: '200' })).toMatchObject({
      status: 0,
      stdout: 'TimeoutError undefined\nwaited\n',
    })
  })

  test('until the caller stops waiting, even if the call still runs', () => {
    const program = `
      import { Device, DeviceBuffer } from '@shoal/driver'
      import { Session, UniqueId } from '@shoal/nvshmem'
      const session = await Session.init(${options(1)})
      const here = await session.allocate('u8', 64)
      const source = DeviceBuffer.zeros(Device.get(0), 'u8', 64)
      const first = session.quiet()
      await session.quiet({ timeout: 10 }).catch(({ name }) => console.log(name))
      await first
      // The second one is under way, and nobody waits for it.
      session.put(here, source, { pe: 0, timeout: 50 }).catch(({ name }) => console.log(name))`
    const ended = run(program, { FIRST_QUIET: '200', LATER_QUIETS: '3600000' })
    expect(ended).toMatchObject({ status: 0, stdout: 'TimeoutError\nTimeoutError\n' })
  })
})

test('memory used by an aborted call is disposed without waiting, and the error is reported', () => {
  const program = `
    import { Device, DeviceBuffer } from '@shoal/driver'
    import { Session, UniqueId } from '@shoal/nvshmem'
    const session = await Session.init(${options(1)})
    const [device, here] = [Device.get(0), await session.allocate('u8', 64)]
    const source = DeviceBuffer.zeros(device, 'u8', 64)
    const call = session.put(here, source, { pe: 0, timeout: 50 })
    console.log(await call.catch(({ name }) => name))
    await source[Symbol.asyncDispose]()
    console.log('disposed')
    process.exit(0)`
  expect(run(program, { PUT: '3600000' })).toMatchObject({ status: 0, stdout: 'TimeoutError\ndisposed\n' })
})
