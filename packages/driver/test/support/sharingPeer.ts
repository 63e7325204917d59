// The other side of shared memory: fixtures/sharing.mjs in a process or a thread.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect } from 'vitest'

const script = new URL('../fixtures/sharing.mjs', import.meta.url)

interface Answer {
  readonly result: { readonly values: unknown }
  readonly error?: { readonly name: string; readonly message: string; readonly code: string }
}

/** The other side, which runs one action after the other. */
export class Peer {
  readonly channel: ChildProcess | Worker

  private constructor(kind: 'process' | 'thread') {
    const env = { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' }
    this.channel = kind === 'thread' ? new Worker(script) : fork(script, { env, execArgv: [] })
  }

  static async start(kind: 'process' | 'thread'): Promise<Peer> {
    const peer = new Peer(kind)
    await peer.said('start')
    return peer
  }

  async said(what: string): Promise<Answer> {
    for (;;) {
      const [message] = await once(this.channel, 'message', { signal: AbortSignal.timeout(60_000) })
      if (message.done === what) return message
    }
  }

  tell(action: string, argument?: unknown) {
    const answer = this.said(action)
    const message = { action, argument }
    if (this.channel instanceof Worker) this.channel.postMessage(message)
    else this.channel.send(message)
    return answer
  }

  async end(): Promise<void> {
    if (this.channel instanceof Worker) await this.channel.terminate()
    else if (this.channel.exitCode === null && this.channel.signalCode === null) {
      const gone = once(this.channel, 'exit')
      this.channel.kill('SIGKILL')
      await gone
    }
  }
}

/** Returns this process's open descriptors. */
export const descriptors = (): number => readdirSync('/proc/self/fd').length

/** Starts the other side for the tests of a file. It ends after each test and leaves no descriptors. */
export function peersOfTests(): (kind: 'process' | 'thread') => Promise<Peer> {
  let peer: Peer | undefined
  let before = 0
  beforeEach(() => {
    before = descriptors()
  })
  afterEach(async () => {
    await peer?.end()
    // A forked process inherits some descriptors, and those of the devices stay.
    await expect.poll(descriptors, { timeout: 60_000 }).toBeLessThanOrEqual(before + 4)
  })
  return async (kind) => {
    peer = await Peer.start(kind)
    return peer
  }
}
