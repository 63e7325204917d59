import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { RendezvousError } from '../errors.js'
import type { Address } from './address.js'
import type { ServedJob } from './admission.js'
import { listenForJob, RendezvousServer } from './server.js'

/** What a helper is told, on its standard input: the secret is on no command line and in no environment. */
interface HelperTask {
  readonly worldSize: number
  readonly secret: string
  readonly address: Address
  readonly job: ServedJob
  /** Removed at the end. */
  readonly folder: string | undefined
}

/** The address is in use by somebody else. */
export const inUse = 'in use'

/**
 * Starts a process that serves the rendezvous, for launchers that have none. A process of its own, so that the ranks
 * can still find each other when rank 0 dies, and are not kept waiting when it is busy. It ends with the last
 * connection. Tells whether the address was free. @throws RendezvousError
 */
export async function startHelper(task: HelperTask): Promise<'ready' | typeof inUse> {
  const code = 'require(process.argv[1]).serveAsHelper()'
  const child = spawn(process.execPath, ['--input-type=commonjs', '-e', code, serverModule()], {
    // A session of its own: what ends the group of rank 0 must not end the rendezvous of the others.
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
    child.stdin.on('error', () => undefined) // the end of its output tells
    child.stdin.write(`${JSON.stringify(task)}\n`)
  }).catch((cause: unknown) => {
    const words = cause instanceof Error ? cause.message : String(cause)
    throw new RendezvousError(`cannot start the process that serves the rendezvous: ${words}`, { cause })
  })
  // From here on it lives as long as the job does, not as long as this process.
  child.unref()
  for (const stream of [child.stdin, child.stdout]) {
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
  }
  if (answer !== 'ready' && answer !== inUse) throw new RendezvousError(answer)
  return answer
}

/**
 * What Node itself may need to start. Its options are meant for the program, and the rest is none of the helper's
 * business.
 */
function loaderEnvironment(): NodeJS.ProcessEnv {
  const names = ['PATH', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH']
  return Object.fromEntries(names.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])))
}

/**
 * As a package, not relative to this file: a bundler may have put that into the user's program, which must not run
 * again.
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

/** @internal What the process does that `startHelper` starts. */
export async function serveAsHelper(): Promise<void> {
  const task = await readTask()
  const { worldSize, address, job } = task
  const end = (): void => {
    if (task.folder !== undefined) removeFolder(task.folder, task.secret)
    process.exit(0)
  }
  // Somebody ends everything that runs here, such as a container that stops.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, end)
  try {
    const options = { worldSize, secret: Buffer.from(task.secret), onEmpty: end }
    const server = await RendezvousServer[listenForJob]({ ...options, address }, job).catch((error: unknown) => {
      // A machine without IPv6.
      const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
      if (address.kind !== 'tcp' || address.host !== '::' || code === 'EADDRINUSE') throw error
      return RendezvousServer[listenForJob]({ ...options, address: { ...address, host: '0.0.0.0' } }, job)
    })
    // Rank 0 holds the other end. Where it dies before anybody has come, nobody will.
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

/** A later job of the same name may have made it its own. */
function removeFolder(folder: string, secret: string): void {
  try {
    if (readFileSync(join(folder, 'secret'), 'utf8') !== secret) return
  } catch {
    return // it is gone
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
