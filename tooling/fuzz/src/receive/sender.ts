/** Sends the messages of a case to the process under test, over the channel of the case. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { Random } from '@shoal/conformance'
import { DescriptorServer, DescriptorSocket } from '@shoal/driver'
import { closeDescriptor } from '@shoal/ffi'
import { propertyOf } from '@shoal/types'
import { type Case, framed, type Part } from './cases.js'
import { pick } from './mutate.js'
import type { Outcome, Question } from './question.js'
import { sendRaw } from './rawSocket.js'
import type { Victim } from './victimProcess.js'

let paths = 0
const nextPath = (): string => {
  paths += 1
  return `\0shoal-share-fuzz-${process.pid}-${paths}`
}

/** Bytes that fit into a command-line argument. */
const mostOfArgument = 60_000

/** Result of a send when the buffer of the socket is full. */
const tryAgain = -11

export class Sender {
  readonly #victim: Victim
  readonly #strays: readonly number[]
  #socket: DescriptorSocket | undefined

  constructor(victim: Victim, strays: readonly number[]) {
    this.#victim = victim
    this.#strays = strays
  }

  close(): void {
    this.#socket?.dispose()
    this.#socket = undefined
  }

  run(one: Case): Promise<Outcome> {
    switch (one.kind) {
      case 'memory':
        return this.#send(one, { ask: 'receiveMemory' })
      case 'handle':
        return this.#send(one, { ask: 'receiveHandle', content: one.template.name === 'pool' ? 'pool' : 'memory' })
      case 'frame':
        return this.#frames(one)
      case 'receive':
        return this.#receive(one)
      case 'share':
        return this.#share(one)
      case 'thread':
        return this.#victim.ask({ ask: 'thread', seed: one.seed })
      case 'death':
        return this.#death(one)
    }
  }

  /**
   * Returns the open connection, or opens one. Many cases use the same connection, as long as no message can be left in
   * it.
   */
  async #connect(): Promise<DescriptorSocket | Outcome> {
    if (this.#socket !== undefined) return this.#socket
    const path = nextPath()
    const server = DescriptorServer.listen(path)
    try {
      const connected = this.#victim.ask({ ask: 'connect', path })
      const outcome = await connected
      if (outcome.kind !== 'done') return outcome
      this.#socket = await server.accept({ timeout: 60_000 })
      return this.#socket
    } finally {
      server.dispose()
    }
  }

  async #send(one: Case, question: Question): Promise<Outcome> {
    const socket = await this.#connect()
    if (!(socket instanceof DescriptorSocket)) return socket
    const answered = this.#victim.ask(question)
    const stop = new AbortController()
    const sent = sendAll(socket, one.parts, stop.signal)
    const closes = one.parts.length !== 1 || mayWantMore(one.parts[0] as Part)
    // Closing the connection ends the receiver's wait for further messages.
    if (closes) void sent.then(() => this.close())
    const outcome = await answered
    stop.abort()
    await sent
    return outcome
  }

  async #frames(one: Case): Promise<Outcome> {
    this.close()
    const socket = await this.#connect()
    if (!(socket instanceof DescriptorSocket)) return socket
    let isOver = false
    const answered = this.#victim.ask({ ask: one.seed % 2 === 0 ? 'frame' : 'receiveMemory' })
    void answered.then(() => {
      isOver = true
    })
    for (const part of one.parts) {
      let rest = part.bytes
      let descriptors = part.descriptors
      while (rest.length > 0 && !isOver) {
        const count = sendRaw(socket.descriptor, rest, descriptors)
        if (count < 0 && count !== tryAgain) break
        if (count < 0) await pause(1)
        else {
          rest = rest.subarray(count)
          descriptors = []
        }
      }
    }
    this.close()
    return answered
  }

  async #receive(one: Case): Promise<Outcome> {
    const path = nextPath()
    const server = DescriptorServer.listen(path)
    const messages = one.offers.map((offer) => ({ ...offer, ...(propertyOf(offer, 'path') === '' ? { path } : {}) }))
    const answered = this.#victim.ask({ ask: 'receive', messages })
    const stop = new AbortController()
    void answered.then(() => stop.abort())
    let socket: DescriptorSocket | undefined
    try {
      socket = await server.accept({ signal: stop.signal })
      // A second connection attempt must fail.
      server.dispose()
      await socket.receive({ signal: stop.signal })
      await sendAll(socket, one.parts, stop.signal)
      // A sender that ends before it hears that the memory was taken has aborted the transfer.
      if (!one.isRight && (one.parts.length !== 1 || mayWantMore(one.parts[0] as Part))) socket.dispose()
    } catch {
      // The receiver refused the offer.
    }
    const outcome = await answered
    socket?.dispose()
    server.dispose()
    return outcome
  }

  async #share(one: Case): Promise<Outcome> {
    const outcome = await this.#victim.ask({ ask: 'share' })
    if (outcome.kind !== 'path') return outcome
    const random = new Random(one.seed)
    const socket = DescriptorSocket.connect(outcome.path)
    const answered = this.#victim.next()
    try {
      for (const answer of one.answers) {
        const isEmpty = one.isRight || random.integer(0, 1) === 0
        const descriptors = isEmpty ? [] : [pick(random, this.#strays), pick(random, this.#strays)]
        await socket.send({ bytes: Buffer.from(JSON.stringify(answer)), descriptors })
        if (answer === one.answers[0]) {
          const message = await socket.receive({ timeout: 5000 })
          for (const descriptor of message.descriptors) closeDescriptor(descriptor)
        }
      }
    } catch {
      // The sharer refused an earlier answer.
    }
    // Sends an extra message after the memory was taken.
    if (random.integer(0, 3) === 0)
      await socket.send({ descriptors: [pick(random, this.#strays)] }).catch(() => undefined)
    socket.dispose()
    return answered
  }

  async #death(one: Case): Promise<Outcome> {
    this.close()
    const [{ bytes, descriptors }] = one.parts as [Part]
    const frame = framed(bytes, descriptors.length)
    const end = new Random(one.seed).integer(0, Math.min(frame.length, mostOfArgument))
    const part = Buffer.from(frame.subarray(0, end)).toString('base64')
    const path = nextPath()
    const program = new URL('dyingPeer.js', import.meta.url)
    const peer = fork(program, [path.slice(1), part], { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    const ended = once(peer, 'exit')
    await once(peer, 'message')
    const connected = await this.#victim.ask({ ask: 'connect', path })
    const outcome = connected.kind === 'done' ? await this.#victim.ask({ ask: 'receiveMemory' }) : connected
    await ended
    return outcome
  }
}

async function sendAll(socket: DescriptorSocket, parts: readonly Part[], signal: AbortSignal): Promise<void> {
  try {
    for (const { bytes, descriptors } of parts) await socket.send({ bytes, descriptors }, { signal })
  } catch {
    // The receiver has closed the connection.
  }
}

/** Returns true if the receiver may wait for further messages. */
function mayWantMore({ bytes }: Part): boolean {
  try {
    const { pieces } = JSON.parse(Buffer.from(bytes).toString()) as { pieces?: unknown }
    return Array.isArray(pieces) && pieces.length > 64
  } catch {
    return false
  }
}
