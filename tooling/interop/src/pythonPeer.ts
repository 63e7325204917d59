import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { DescriptorServer, type DescriptorSocket } from '@shoal/driver'

const script = fileURLToPath(new URL('../python/peer.py', import.meta.url))
/** Some libraries take long to load. */
const startTimeout = 120_000
export const answerTimeout = 60_000

/** What a Python library reports about itself. */
export interface PeerFacts {
  readonly library: string
  readonly version: string | null
  readonly python: string
}

/** A Python program that uses one CUDA library. It connects to a socket of this process by path, as any program can. */
export class PythonPeer {
  readonly facts: PeerFacts
  readonly socket: DescriptorSocket
  readonly #child: ChildProcess

  private constructor(facts: PeerFacts, socket: DescriptorSocket, child: ChildProcess) {
    this.facts = facts
    this.socket = socket
    this.#child = child
  }

  /** @throws Error that says if Python or the library is missing */
  static async start(python: string, library: string, libcuda: string, path: string): Promise<PythonPeer> {
    const server = DescriptorServer.listen(path)
    const ended = new AbortController()
    let errors = ''
    const child = spawn(python, ['-B', script, path, library, libcuda], { stdio: ['ignore', 'inherit', 'pipe'] })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-4000)
      process.stderr.write(text)
    })
    const failed = new Promise<never>((_, reject) => {
      child.once('error', (error) => reject(new Error(`${python} does not start: ${error.message}`)))
      child.once('exit', (code) => reject(new Error(`${python} ended (${code}) before it connected: ${errors.trim()}`)))
    })
    failed.catch(() => ended.abort())
    try {
      const accepted = server.accept({ timeout: startTimeout, signal: ended.signal })
      // If the child has ended, its error is the reason.
      const socket = await Promise.race([
        failed,
        accepted.catch((error: unknown) => (ended.signal.aborted ? failed : Promise.reject(error))),
      ])
      const facts = await receiveJson<PeerFacts>(socket, startTimeout)
      return new PythonPeer(facts, socket, child)
    } catch (error) {
      child.kill()
      throw error
    } finally {
      server.dispose()
    }
  }

  /** Sends a request. Its answer comes after any further messages of the request. */
  async request(request: object): Promise<void> {
    await this.socket.send({ bytes: Buffer.from(JSON.stringify(request)) }, { timeout: answerTimeout })
  }

  /** Receives the next answer. @throws Error with the error that Python reported */
  async answer<T>(): Promise<T> {
    return receiveJson<T>(this.socket, answerTimeout)
  }

  /** Ends the program. Without its socket it has nothing to wait for. */
  async close(): Promise<void> {
    const ended =
      this.#child.exitCode !== null || this.#child.signalCode !== null
        ? Promise.resolve()
        : new Promise<void>((resolve) => this.#child.once('exit', () => resolve()))
    this.socket.dispose()
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(timer)
  }
}

async function receiveJson<T>(socket: DescriptorSocket, timeout: number): Promise<T> {
  const { bytes } = await socket.receive({ timeout })
  const value = JSON.parse(Buffer.from(bytes).toString('utf8')) as T & { readonly error?: string }
  if (value.error !== undefined) throw new Error(`in Python: ${value.error}`)
  return value
}
