import { connect } from 'node:net'
import { type Address, socketOptions } from './address.js'
import type { Admitted } from './connection.js'
import { Reader } from './frames.js'
import {
  acceptanceBytes,
  greetingBytes,
  type Introducing,
  isAcceptance,
  makeIntroduction,
  type Refusal,
  readGreeting,
  readRefusal,
  refusalBytes,
} from './handshake.js'
import { keepAliveDelay } from './timing.js'

/** Address and secret of a rendezvous. */
export interface Target {
  readonly address: Address
  readonly secret: Uint8Array
}

/** A server's refusal of this process. */
export interface Refused {
  readonly refusal: Refusal
  readonly words: string
}

export function isRefused(outcome: object | string): outcome is Refused {
  return typeof outcome === 'object' && 'refusal' in outcome
}

/** Milliseconds for the server's greeting, unless less time is left. */
const handshakeLimit = 10_000

export const silence = 'it does not answer'
const somethingElse = 'something else answers there'

/** Makes one attempt; returns a connection, or why there is none. */
export function attempt(
  target: Target,
  who: Introducing,
  timeout: number,
  signal: AbortSignal | undefined,
  greetingLimit: number = handshakeLimit,
): Promise<Admitted | Refused | string> {
  const secret = Buffer.from(target.secret)
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: keepAliveDelay }
  return new Promise((resolve) => {
    const socket = connect({ ...socketOptions(target.address), noDelay: true, ...keepAlive })
    const reader = new Reader()
    let serverNonce: Buffer | undefined
    let clientNonce: Buffer | undefined

    const finish = (outcome: Admitted | Refused | string): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      socket.off('error', onError).off('close', onClose).off('data', onData)
      socket.on('error', () => undefined) // 'close' follows with all necessary information
      if (typeof outcome === 'string' || isRefused(outcome)) socket.destroy()
      resolve(outcome)
    }
    const onAbort = (): void => finish('aborted')
    const onError = (error: Error): void => finish(error.message)
    const onClose = (): void => finish('it closed the connection')
    const onData = (chunk: Buffer): void => {
      reader.push(chunk)
      const answer = step()
      if (answer !== undefined) finish(answer)
    }
    const start = performance.now()
    const giveUp = (): void => finish(silence)
    let timer = setTimeout(giveUp, Math.min(timeout, greetingLimit))
    signal?.addEventListener('abort', onAbort, { once: true })
    socket.on('error', onError).on('close', onClose).on('data', onData)

    function step(): Admitted | Refused | string | undefined {
      if (serverNonce === undefined || clientNonce === undefined) {
        const greeting = reader.take(greetingBytes)
        if (greeting === undefined) return undefined
        serverNonce = readGreeting(greeting)
        if (serverNonce === undefined) return somethingElse
        const introduction = makeIntroduction(secret, serverNonce, who)
        clientNonce = introduction.nonce
        socket.write(introduction.bytes)
        // The server may already have admitted this rank: disconnecting now would count it as lost.
        clearTimeout(timer)
        timer = setTimeout(giveUp, Math.max(timeout - (performance.now() - start), 0))
      }
      const held = reader.peek()
      if (held === undefined) return undefined
      if (held[0] !== 0) {
        const length = refusalBytes(held)
        const bytes = length === undefined ? undefined : reader.take(length)
        if (bytes === undefined) return undefined
        return readRefusal(secret, serverNonce, clientNonce, bytes) ?? somethingElse
      }
      const answer = reader.take(acceptanceBytes)
      if (answer === undefined) return undefined
      if (!isAcceptance(secret, serverNonce, clientNonce, answer)) {
        return 'what answers there does not know the secret of the job'
      }
      // No listener is attached until the connection takes over, so pause to lose no data.
      socket.pause()
      return { socket, reader }
    }
  })
}
