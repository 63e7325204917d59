#!/usr/bin/env node
/** The process under test. It receives memory on request and reports the outcome. */
import { EventEmitter } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { DescriptorSocket, Device, DeviceBuffer, MemoryPool, PhysicalMemory, receiveHandle } from '@shoal/driver'
import { receive, receiveMemory, type SharedMemory, share } from '@shoal/driver/sharing'
import { closeDescriptor } from '@shoal/ffi'
import { memoryProtocol, ShoalError } from '@shoal/types'
import { engineError } from '../arguments/classify.js'
import type { Outcome, Question } from './question.js'
import { threadCase } from './threadCase.js'

const device = Device.get(0)
/** Milliseconds. No question takes longer, even on a busy machine, so a case that reaches this limit hangs. */
const wait = { timeout: 60_000 }
const bytesShown = 64
const secretByte = 0xee
const secret = DeviceBuffer.allocate(device, 'u8', 4096).fillSync(secretByte)
/** Memory that this process shares. The other side may read it. */
const offered = DeviceBuffer.allocate(device, 'u8', 4096).fillSync(0xab)
let socket: DescriptorSocket | undefined

function required(): DescriptorSocket {
  if (socket === undefined) throw new Error('connect first')
  return socket
}

function refusal(error: unknown): Outcome {
  if (!(error instanceof Error)) return { kind: 'wrong', what: `no error was thrown, but ${String(error)}` }
  const { name, message } = error
  const code = String((error as NodeJS.ErrnoException).code ?? '')
  if (code === 'SHOAL_TIMEOUT') return { kind: 'wrong', what: `it hangs: ${message}` }
  const isNamed = error instanceof ShoalError || /^[A-Za-z.]+: /.test(message)
  if (engineError(error) || !isNamed) return { kind: 'wrong', what: `an error without a type: ${error.stack}` }
  if (message.length > 2000)
    return { kind: 'wrong', what: `an error of ${message.length} characters: ${message.slice(0, 200)}` }
  return { kind: 'refused', name, message: message.slice(0, 300), code }
}

/** Reads both ends of received memory, uses all its properties, and disposes of it. */
function look(memory: SharedMemory): Outcome {
  const { way, byteLength, shape, strides, length } = memory
  try {
    const range = memory[memoryProtocol]
    const count = Math.min(byteLength, bytesShown)
    const read = (offset: number): string => {
      const view = DeviceBuffer.view(memory.device, memory, 'u8', { byteOffset: offset, length: count })
      return Buffer.from(view.toArraySync()).toString('hex')
    }
    const [start, end] = [read(0), read(byteLength - count)]
    const own = range.address >= offered.address && range.address < offered.address + 4096n
    if (shape.length !== strides.length || !Number.isSafeInteger(length))
      return { kind: 'wrong', what: `shape [${shape}] with strides [${strides}]` }
    try {
      memory.buffer.slice(0, 1)
    } catch (error) {
      const outcome = refusal(error)
      if (outcome.kind === 'wrong') return outcome
    }
    return { kind: 'opened', way, byteLength, start, end, own }
  } finally {
    memory.dispose()
  }
}

async function handle(content: 'memory' | 'pool'): Promise<Outcome> {
  const given = await receiveHandle(required(), content, wait)
  try {
    if (content === 'memory') PhysicalMemory.import(device, given as never).dispose()
    else MemoryPool.import(device, given as never).dispose()
    return { kind: 'done' }
  } finally {
    given.dispose()
  }
}

async function frame(): Promise<Outcome> {
  const { descriptors } = await required().receive(wait)
  for (const descriptor of descriptors) closeDescriptor(descriptor)
  return { kind: 'done' }
}

async function receiveOver(messages: readonly unknown[]): Promise<Outcome> {
  const channel = Object.assign(new EventEmitter(), {
    send(): boolean {
      setImmediate(() => {
        for (const message of messages) channel.emit('message', message)
        // A channel reports its own end.
        setTimeout(() => channel.emit('disconnect'), 5)
      })
      return true
    },
  })
  return look(await receive(channel, wait))
}

async function shareOver(): Promise<Outcome> {
  const channel = Object.assign(new EventEmitter(), {
    send(message: { path?: string }): boolean {
      say({ kind: 'path', path: message.path ?? '' })
      return true
    },
  })
  const { released } = await share(channel, offered, wait)
  await released
  return { kind: 'done' }
}

async function thread(seed: number): Promise<Outcome> {
  const { received, shared } = await threadCase(seed, offered)
  const outcome = received instanceof Error ? refusal(received) : look(received)
  const other = shared === undefined ? outcome : refusal(shared)
  return other.kind === 'wrong' ? other : outcome
}

const count = (): number => readdirSync('/proc/self/fd').length
const mappings = (): number =>
  readFileSync('/proc/self/maps', 'utf8')
    .split('\n')
    .filter((line) => line.includes('memfd')).length
let before: { readonly open: number; readonly mapped: number } | undefined

async function check(): Promise<Outcome> {
  socket?.dispose()
  socket = undefined
  before ??= { open: count(), mapped: mappings() }
  const { open, mapped } = before
  // Ports and sockets close in a later turn of the event loop.
  for (let turn = 0; turn < 200 && (count() > open || mappings() > mapped); turn += 1) await pause(20)
  if (count() > open) return { kind: 'wrong', what: `${count() - open} descriptors are left open` }
  if (mappings() > mapped) return { kind: 'wrong', what: `${mappings() - mapped} mappings are left` }
  if (!secret.toArraySync().every((byte) => byte === secretByte))
    return { kind: 'wrong', what: 'memory that was never shared was written' }
  return { kind: 'done' }
}

async function answer(question: Question): Promise<Outcome> {
  switch (question.ask) {
    case 'connect':
      socket?.dispose()
      socket = DescriptorSocket.connect(question.path)
      return { kind: 'done' }
    case 'receiveMemory':
      return look(await receiveMemory(required(), wait))
    case 'receiveHandle':
      return handle(question.content)
    case 'frame':
      return frame()
    case 'receive':
      return receiveOver(question.messages)
    case 'share':
      return shareOver()
    case 'thread':
      return thread(question.seed)
    case 'secret':
      return { kind: 'secret', address: String(secret.address), process: process.pid }
    case 'check':
      return check()
  }
}

const say = (outcome: Outcome): void => void process.send?.(outcome)

process.on('uncaughtException', (error) => {
  say({ kind: 'wrong', what: `nobody caught ${error.stack}` })
})
process.on('warning', (warning) => {
  if (warning.name === 'ShoalLeakWarning') say({ kind: 'wrong', what: warning.message })
})
process.on('message', async (question: Question) => {
  say(await answer(question).catch(refusal))
})
