import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import {
  type DescriptorHandle,
  DescriptorServer,
  type DescriptorSocket,
  type IpcEventHandle,
  type IpcMemoryHandle,
  type PoolPointer,
  sendHandle,
} from '@shoal/driver'
import { Mismatch } from './operation.js'

/** A request to another process or thread. */
export type Question =
  | { readonly kind: 'memory'; readonly device: number; readonly handle: IpcMemoryHandle; readonly value: number }
  | { readonly kind: 'event'; readonly device: number; readonly handle: IpcEventHandle }
  | {
      readonly kind: 'pool'
      readonly device: number
      readonly path: string
      readonly pointer: PoolPointer
      readonly value: number
    }
  /** A request for the memory that `share` sends next. */
  | { readonly kind: 'shared'; readonly value: number; readonly timeout: number }

/** The content that the other side found, or its error. */
export type Answer = { readonly found: string } | { readonly error: string }

/**
 * The other process or thread with which this process shares memory. There is one of each kind. It ends with this
 * process.
 */
export class Peer {
  static readonly #peers = new Map<'process' | 'thread', Peer>()
  readonly channel: ChildProcess | Worker
  readonly path = join(tmpdir(), `shoal-fuzz-${process.pid}-${Math.random().toString(36).slice(2)}`)
  readonly #kind: 'process' | 'thread'
  #socket: DescriptorSocket | undefined

  private constructor(kind: 'process' | 'thread') {
    const program = new URL('peerProgram.js', import.meta.url)
    this.#kind = kind
    this.channel = kind === 'thread' ? new Worker(program) : fork(program, [], { execArgv: [] })
    // The peer must not keep this process running.
    this.channel.unref()
    this.#hold('unref')
  }

  static get(kind: 'process' | 'thread' = 'process'): Peer {
    const found = Peer.#peers.get(kind)
    if (found !== undefined) return found
    const made = new Peer(kind)
    Peer.#peers.set(kind, made)
    return made
  }

  #hold(how: 'ref' | 'unref'): void {
    if (this.channel instanceof Worker) this.channel[how]()
    else this.channel.channel?.[how]()
  }

  /** Sends a question and waits for the answer. Only one question may be open at a time. */
  async ask(question: Question): Promise<string> {
    const { channel } = this
    const ended = new AbortController()
    const end = (): void => ended.abort(new Mismatch('it has ended'))
    channel.once('exit', end)
    this.#hold('ref')
    try {
      if (channel instanceof Worker) channel.postMessage(question)
      else channel.send(question)
      for (;;) {
        const [answer] = (await once(channel, 'message', { signal: ended.signal })) as [
          Answer | { readonly shoal: string },
        ]
        // Messages between share() and receive().
        if ('shoal' in answer) continue
        if ('error' in answer) throw new Mismatch(`another ${this.#kind}: ${answer.error}`)
        return answer.found
      }
    } finally {
      channel.off('exit', end)
      this.#hold('unref')
    }
  }

  /** Ends the peer, even if it is busy. */
  async end(): Promise<void> {
    Peer.#peers.delete(this.#kind)
    this.#socket?.dispose()
    const gone = once(this.channel, 'exit')
    if (this.channel instanceof Worker) await this.channel.terminate()
    else {
      this.channel.ref()
      this.channel.kill('SIGKILL')
    }
    await gone
  }

  /** Sends a question about a pool, and the handle of the pool over a socket. */
  async askOfPool(
    question: Omit<Question & { kind: 'pool' }, 'path'>,
    handle: DescriptorHandle<'pool'>,
  ): Promise<string> {
    const server = this.#socket === undefined ? DescriptorServer.listen(this.path) : undefined
    try {
      const answer = this.ask({ ...question, path: this.path })
      answer.catch(() => undefined)
      if (server !== undefined) this.#socket = await server.accept({ timeout: 60_000 })
      await sendHandle(this.#socket as DescriptorSocket, handle)
      return await answer
    } finally {
      server?.dispose()
    }
  }
}
