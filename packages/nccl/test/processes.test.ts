import { type ChildProcess, fork, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'

const script = fileURLToPath(new URL('fixtures/rank.mjs', import.meta.url))
const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

interface End {
  readonly message: {
    readonly result?: number
    readonly status?: number
    readonly asyncError?: string
    readonly error?: string
  }
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Starts one process per rank. Each entry is how its rank ends. */
function start(endings: readonly ('destroy' | 'abort' | 'leave' | 'die')[]): Promise<End[]> {
  for (const [rank, ending] of endings.entries()) {
    const env: NodeJS.ProcessEnv = {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: String(endings.length),
    }
    const child = fork(script, [JSON.stringify([rank, endings.length, ending])], { env, execArgv: [] })
    children.push(child)
  }
  return Promise.all(
    children.map(
      (child) =>
        new Promise<End>((resolve, reject) => {
          let message: End['message'] = {}
          child.on('message', (received: End['message'] & { id?: string }) => {
            if (received.id === undefined) message = received
            else for (const other of children) if (other !== child) other.send(received)
          })
          child.once('error', reject)
          child.once('close', (code, signal) => resolve({ message, code, signal }))
        }),
    ),
  )
}

test('three ranks in three processes compute a sum, and destroy their communicators', async () => {
  const ends = await start(['destroy', 'destroy', 'destroy'])
  for (const end of ends) expect(end).toEqual({ message: { result: 6, status: 0 }, code: 0, signal: null })
})

test('processes with undestroyed communicators exit by themselves', async () => {
  for (const end of await start(['leave', 'leave'])) expect(end).toMatchObject({ message: { result: 3 }, code: 0 })
})

test('a rank that dies causes an error on the other rank, which aborts and survives', async () => {
  const [, survivor] = await start(['die', 'abort'])
  expect(survivor?.code).toBe(0)
  const { error, asyncError } = survivor?.message ?? {}
  expect([error, asyncError]).toContain('ncclRemoteError')
})

test('an aborted init does not keep the process alive', async () => {
  const program = `
    import { Communicator, UniqueId } from '@shoal/nccl'
    const abort = new AbortController()
    const options = { device: 0, rank: 0, worldSize: 2, id: UniqueId.create(), signal: abort.signal }
    const joined = Communicator.initRank(options)
    setTimeout(() => abort.abort(), 100)
    await joined.catch((error) => console.log(error.code))
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  children.push(child)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const late = new Promise<string>((resolve) => setTimeout(() => resolve('still running after 8 s'), 8000).unref())
  expect(await Promise.race([ended, late])).toBe(0)
  expect(output).toBe('SHOAL_ABORTED\n')
}, 15_000)
