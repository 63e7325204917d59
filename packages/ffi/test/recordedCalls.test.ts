import { inspect } from 'node:util'
import { Worker } from 'node:worker_threads'
import { NativeMemory, offThread } from '@shoal/ffi'
import { callAtThreadEnd, putPointer, recordCalls } from '@shoal/ffi/calls'
import { expect, test } from 'vitest'
import { prelude, runNode } from './support/runNode.js'
import { failWith, storeThread } from './support/stubCalls.js'

test('recorded calls run at each replay on this thread, and not during recording', async () => {
  using thread = NativeMemory.allocate(8)
  const calls = recordCalls(() => {
    expect(storeThread(thread)).toBe(0)
    expect(failWith(5)).toBe(0)
  })
  expect(thread.u64[0]).toBe(0n)
  using here = NativeMemory.allocate(8)
  storeThread(here)
  for (let round = 0; round < 3; round += 1) {
    thread.u64[0] = 0n
    calls.make(5)
    expect(thread.u64[0]).toBe(here.u64[0])
  }
  expect(inspect(calls)).toBe('RecordedCalls {}')
  await offThread({}, () => {
    expect(() => calls.make()).toThrow('RecordedCalls.make: calls are being recorded')
    failWith(0)
  })
})

test('recorded calls return the first relevant status, and later calls still run', () => {
  using thread = NativeMemory.allocate(8)
  const calls = recordCalls(() => {
    failWith(0)
    failWith(7)
    failWith(3)
    failWith(4)
    storeThread(thread)
  })
  expect(calls.make()).toBe(7)
  expect(calls.make(7)).toBe(3)
  expect(thread.u64[0]).not.toBe(0n)
})

test('a refused recording leaves nothing behind', () => {
  expect(() => recordCalls(5 as never)).toThrow('recordCalls: record must be a function, not 5')
  expect(() => recordCalls(async () => undefined)).toThrow(
    'recordCalls: record must be a function that is not asynchronous',
  )
  expect(() => recordCalls(() => putPointer(0, new Float32Array(1), 'f', 'p'))).toThrow(TypeError)
  expect(() => recordCalls(() => recordCalls(() => undefined))).toThrow('recorded already')
  expect(failWith(6)).toBe(6)
})

/** A worker that records calls for its end: some that are made, and some that were withdrawn. */
const worker = (rest: string): string => `${prelude}
  const { parentPort, workerData } = await import('node:worker_threads')
  const { callAtThreadEnd, putHandle } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi/calls'))})
  const store = library.bind('store_thread', 0, 1)
  const storeTo = (address) => { putHandle(0, address, 'store_thread', 'out'); store() }
  ${rest}
  parentPort.postMessage('ready')
  setInterval(() => {}, 1000)`

test.each(['terminate', 'exit'])(
  'calls for the end of a thread run then, and cancelled ones do not (%s)',
  async (way) => {
    using threads = NativeMemory.allocate(24)
    const code = worker(`
    callAtThreadEnd(() => { storeTo(workerData); sleepMs(50) })
    const takeBack = callAtThreadEnd(() => storeTo(workerData + 8n))
    takeBack()
    callAtThreadEnd(() => storeTo(workerData + 16n))
    takeBack()
    if (${way === 'exit'}) setTimeout(() => process.exit(), 20)`)
    const thread = new Worker(code, {
      eval: true,
      execArgv: ['--input-type=module'],
      workerData: threads.address,
    })
    await new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject))
    if (way === 'terminate') expect([...threads.u64]).toEqual([0n, 0n, 0n])
    const ended = new Promise((resolve) => thread.once('exit', resolve))
    if (way === 'terminate') await thread.terminate()
    await ended
    const [first, second, third] = threads.u64
    expect(first).not.toBe(0n)
    expect([second, third]).toEqual([0n, first])
  },
)

test('an exiting process does not wait for the end-of-thread calls of its threads, and the main thread runs none', () => {
  const thread = worker('callAtThreadEnd(() => sleepMs(600_000))')
  const run = runNode(`
    const { Worker } = await import('node:worker_threads')
    const thread = new Worker(${JSON.stringify(thread)}, { eval: true, execArgv: ['--input-type=module'] })
    thread.once('message', () => process.exit(3))`)
  expect({ status: run.status, signal: run.signal, stderr: run.stderr }).toEqual({
    status: 3,
    signal: null,
    stderr: '',
  })
  let made = 0
  callAtThreadEnd(() => (made += 1))()
  expect(made).toBe(0)
})
