import type { MessagePort } from 'node:worker_threads'
import { propertyOf, wrongType } from '@shoal/types'
import { peerEnded } from './links.js'

interface Listening {
  on(event: 'message', listener: (message: unknown) => void): unknown
  off(event: 'message', listener: (message: unknown) => void): unknown
}

/** A channel between processes in Node's form: the result of `fork`, or `process` in the child. */
export interface ProcessChannel extends Listening {
  /** Node's send function; absent without a channel. */
  send?(message: object, callback?: (error: Error | null) => void): boolean
}

/** A channel between threads in Node's form: a `Worker`, `parentPort` or a `MessagePort`. */
export interface ThreadChannel extends Listening {
  /** Node's postMessage function. */
  postMessage(message: object, transfer?: readonly MessagePort[]): void
}

/** The channel for {@link share} and {@link receive}. */
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
  // If the other side is gone, the channel's end event reports it.
  else channel.send?.(message, () => undefined)
}

/** Listens on a channel. Returns a function that stops listening. */
export function listen(channel: SharingChannel, kind: string, heard: (message: unknown) => void): () => void {
  const listener = (message: unknown): void => {
    if (propertyOf(message, 'shoal') === kind) heard(message)
  }
  channel.on('message', listener)
  return () => void channel.off('message', listener)
}

/**
 * Checks that a channel's other side has not ended, as far as the channel knows. A closed port does not report it.
 * @throws SystemError when the other side has ended
 */
export function requireOpen(channel: SharingChannel, api: string): void {
  const hasEnded = isThread(channel)
    ? propertyOf(channel, 'threadId') === -1
    : typeof channel.send !== 'function' || propertyOf(channel, 'connected') === false || hasExited(channel)
  if (hasEnded) throw peerEnded(api)
}

function hasExited(channel: ProcessChannel): boolean {
  // process.exitCode is the exit code that this process will use.
  if (isOwnProcess(channel)) return false
  return [propertyOf(channel, 'exitCode'), propertyOf(channel, 'signalCode')].some(
    (how) => how !== null && how !== undefined,
  )
}

const isOwnProcess = (channel: SharingChannel): boolean => channel === (process as unknown)

interface Waiting {
  readonly calls: Set<() => void>
  /** Removes the listeners from the channel. */
  readonly leave: () => void
}

const waiting = new WeakMap<object, Waiting>()

/**
 * Calls `call` when the other end of a channel ends, if the channel reports it. All pending calls share one listener,
 * because Node warns about a leak for more than ten.
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
  // process.on('exit') reports the end of this process, not of the other one.
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
