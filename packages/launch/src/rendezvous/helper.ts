import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { RendezvousError } from '../errors.js'
import type { Address } from './address.js'
import type { ServedJob } from './admission.js'
import { listenForJob, RendezvousServer } from './server.js'

/** The helper's task, sent on standard input: command line and environment must not contain the secret. */
interface HelperTask {
  readonly worldSize: number
  readonly secret: string
  readonly address: Address
  readonly job: ServedJob
  /** Removed when the helper ends. */
  readonly folder: string | undefined
}

/** Result for an address that another process uses. */
export const inUse = 'in use'

/**
 * Starts a process that serves the rendezvous, for launchers without one.
 *
 * A separate process, so that ranks still find each other when rank 0 dies or is busy. It ends with the last
 * connection. Returns whether the address was free. @throws RendezvousError
 */
export async function startHelper(task: HelperTask): Promise<'ready' | typeof inUse> {
  const code = 'require(process.argv[1]).serveAsHelper()'
  const child = spawn(process.execPath, ['--input-type=commonjs', '-e', code, serverModule()], {
    // A separate session: a signal to the group of rank 0 must not end the rendezvous of the other ranks.
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
    env: loaderEnvironment(),
    cwd: '/',
  })
  const answer = await new Promise<string>((resolve, reject) => {
    let text = ''
    child.once('error', reject)
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.endsWith('\n')) resolve(text.trim())
    })
    child.stdout.once('close', () => reject(new Error(`it ended early${text === '' ? '' : `: ${text}`}`)))
    child.stdin.on('error', () => undefined) // the end of its output reports the failure
    child.stdin.write(`${JSON.stringify(task)}\n`)
  }).catch((cause: unknown) => {
    const words = cause instanceof Error ? cause.message : String(cause)
    throw new RendezvousError(`cannot start the process that serves the rendezvous: ${words}`, { cause })
  })
  // From now on the helper lives as long as the job, not as long as this process.
  child.unref()
  for (const stream of [child.stdin, child.stdout]) {
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
  }
  if (answer !== 'ready' && answer !== inUse) throw new RendezvousError(answer)
  return answer
}

/** Variables that Node itself may need to start, without the options of the program. */
function loaderEnvironment(): NodeJS.ProcessEnv {
  const names = ['PATH', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH']
  return Object.fromEntries(names.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])))
}

/**
 * Resolves the server as a package, not relative to this file: a bundler may have put this file into the user's
 * program, which must not run again.
 */
function serverModule(): string {
  try {
    return createRequire(import.meta.url).resolve('@shoal/launch/server')
  } catch (cause) {
    throw new RendezvousError('cannot find @shoal/launch/server; a bundler must leave @shoal/launch as a package', {
      cause,
    })
  }
}

/** @internal Main function of the process that `startHelper` starts. */
export async function serveAsHelper(): Promise<void> {
  const task = await readTask()
  const { worldSize, address, job } = task
  const end = (): void => {
    if (task.folder !== undefined) removeFolder(task.folder, task.secret)
    process.exit(0)
  }
  // The whole environment ends, such as a container that stops.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, end)
  try {
    const options = { worldSize, secret: Buffer.from(task.secret), onEmpty: end }
    const server = await RendezvousServer[listenForJob]({ ...options, address }, job).catch((error: unknown) => {
      // This machine lacks IPv6.
      const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
      if (address.kind !== 'tcp' || address.host !== '::' || code === 'EADDRINUSE') throw error
      return RendezvousServer[listenForJob]({ ...options, address: { ...address, host: '0.0.0.0' } }, job)
    })
    // Rank 0 holds the other end. If rank 0 dies before any rank connects, no rank will connect.
    process.stdin.once('close', () => {
      if (server.connected.length === 0) end()
    })
    process.stdout.end('ready\n')
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
    const words = code === 'EADDRINUSE' ? inUse : error instanceof Error ? error.message : String(error)
    process.stdout.end(`${words}\n`, end)
  }
}

/** Removes the folder, unless a later job of the same name has taken it over. */
function removeFolder(folder: string, secret: string): void {
  try {
    if (readFileSync(join(folder, 'secret'), 'utf8') !== secret) return
  } catch {
    return // already removed
  }
  rmSync(folder, { recursive: true, force: true })
}

function readTask(): Promise<HelperTask> {
  return new Promise((resolve) => {
    let text = ''
    process.stdin.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.endsWith('\n')) resolve(JSON.parse(text) as HelperTask)
    })
  })
}
