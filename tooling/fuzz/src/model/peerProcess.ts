import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
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

/** What another process is asked to open. */
export type Question = { readonly device: number } & (
  | { readonly kind: 'memory'; readonly handle: IpcMemoryHandle; readonly value: number }
  | { readonly kind: 'event'; readonly handle: IpcEventHandle }
  | { readonly kind: 'pool'; readonly path: string; readonly pointer: PoolPointer; readonly value: number }
)

/** What it found, or what went wrong. */
export type Answer = { readonly found: string } | { readonly error: string }

/** The one other process that this one shares memory with; it ends with it. */
export class PeerProcess {
  static #only: PeerProcess | undefined
  readonly #child: ChildProcess
  readonly path = join(tmpdir(), `shoal-fuzz-${process.pid}-${Math.random().toString(36).slice(2)}`)
  #socket: DescriptorSocket | undefined

  private constructor() {
    this.#child = fork(fileURLToPath(new URL('peerProgram.js', import.meta.url)), [], { execArgv: [] })
    // It keeps nobody waiting.
    this.#child.unref()
    this.#child.channel?.unref()
  }

  static get(): PeerProcess {
    PeerProcess.#only ??= new PeerProcess()
    return PeerProcess.#only
  }

  /** The process is asked one thing at a time. */
  async ask(question: Question): Promise<string> {
    this.#child.channel?.ref()
    try {
      this.#child.send(question)
      const [answer] = (await once(this.#child, 'message')) as [Answer]
      if ('error' in answer) throw new Mismatch(`another process: ${answer.error}`)
      return answer.found
    } finally {
      this.#child.channel?.unref()
    }
  }

  /** The same with a pool, whose handle goes over a socket. */
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
