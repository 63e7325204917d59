import type { MessagePort } from 'node:worker_threads'
import { propertyOf, wrongType } from '@shoal/types'
import { peerEnded } from './links.js'

interface Listening {
  on(event: 'message', listener: (message: unknown) => void): unknown
  off(event: 'message', listener: (message: unknown) => void): unknown
}

/** A channel between processes as Node has it: what `fork` gave, or `process` in its child. */
export interface ProcessChannel extends Listening {
  /** As Node has it; absent where there is no channel. */
  send?(message: object, callback?: (error: Error | null) => void): boolean
}

/** A channel between threads as Node has it: a `Worker`, `parentPort` or a `MessagePort`. */
export interface ThreadChannel extends Listening {
  /** As Node has it. */
  postMessage(message: object, transfer?: readonly MessagePort[]): void
}

/** What {@link share} and {@link receive} work over. */
export type SharingChannel = ProcessChannel | ThreadChannel

export function requireChannel(channel: unknown, api: string): SharingChannel {
  const isChannel = [propertyOf(channel, 'postMessage'), propertyOf(channel, 'send')].some(
    (f) => typeof f === 'function',
  )
  if (isChannel && typeof propertyOf(channel, 'on') === 'function') return channel as SharingChannel
  const expected = 'a ChildProcess with an IPC channel, process in such a child, a Worker or a MessagePort'
  throw wrongType(api, 'channel', expected, channel)
}

export function isThread(channel: SharingChannel): channel is ThreadChannel {
  return typeof propertyOf(channel, 'postMessage') === 'function'
}

export function post(channel: SharingChannel, message: object, port?: MessagePort): void {
  if (isThread(channel)) channel.postMessage(message, port === undefined ? [] : [port])
  // That the other side is gone its end says.
  else channel.send?.(message, () => undefined)
}

/** Listens on a channel until the function that it returns is called. */
export function listen(channel: SharingChannel, kind: string, heard: (message: unknown) => void): () => void {
  const listener = (message: unknown): void => {
    if (propertyOf(message, 'shoal') === kind) heard(message)
  }
  channel.on('message', listener)
  return () => void channel.off('message', listener)
}

/**
 * @throws SystemError for a channel whose other side has ended, as far as the channel knows: a port that is closed does
 * not.
 */
export function requireOpen(channel: SharingChannel, api: string): void {
  const hasEnded = isThread(channel)
    ? propertyOf(channel, 'threadId') === -1
    : typeof channel.send !== 'function' || propertyOf(channel, 'connected') === false || hasExited(channel)
  if (hasEnded) throw peerEnded(api)
}

function hasExited(channel: ProcessChannel): boolean {
  // process.exitCode is what this process will end with.
  if (isOwnProcess(channel)) return false
  return [propertyOf(channel, 'exitCode'), propertyOf(channel, 'signalCode')].some(
    (how) => how !== null && how !== undefined,
  )
}

const isOwnProcess = (channel: SharingChannel): boolean => channel === (process as unknown)

interface Waiting {
  readonly calls: Set<() => void>
  /** Takes the listeners off the channel. */
  readonly leave: () => void
}

const waiting = new WeakMap<object, Waiting>()

/**
 * Calls when the other end of a channel goes, as far as the channel tells. However many calls wait for their turn, the
 * channel has one listener: of more than ten Node warns as of a leak.
 */
export function onEnd(channel: SharingChannel, call: () => void): () => void {
  const { calls, leave } = waiting.get(channel) ?? listenForEnd(channel)
  calls.add(call)
  return () => {
    if (calls.delete(call) && calls.size === 0) leave()
  }
}

function listenForEnd(channel: SharingChannel): Waiting {
  const emitter = channel as unknown as NodeJS.EventEmitter
  const events = isThread(channel) ? ['exit', 'close'] : ['exit', 'disconnect']
  // process.on('exit') is the end of this process, not of the other one.
  const names = isOwnProcess(channel) ? ['disconnect'] : events
  const calls = new Set<() => void>()
  const callAll = (): void => {
    for (const call of [...calls]) call()
  }
  const leave = (): void => {
    for (const name of names) emitter.off(name, callAll)
    waiting.delete(channel)
  }
  for (const name of names) emitter.on(name, callAll)
  const entry = { calls, leave }
  waiting.set(channel, entry)
  return entry
}
