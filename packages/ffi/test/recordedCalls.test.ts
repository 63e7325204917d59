import { inspect } from 'node:util'
import { NativeMemory, offThread } from '@shoal/ffi'
import { putPointer, recordCalls } from '@shoal/ffi/calls'
import { expect, test } from 'vitest'
import { failWith, storeThread } from './support/stubCalls.js'

test('recorded calls are made each time, on this thread, and not while they are recorded', async () => {
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

test('the first status that counts is told, and the calls behind it are made', () => {
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

test('what is refused leaves no recording behind', () => {
  expect(() => recordCalls(5 as never)).toThrow('recordCalls: record must be a function, not 5')
  expect(() => recordCalls(async () => undefined)).toThrow(
    'recordCalls: record must be a function that is not asynchronous',
  )
  expect(() => recordCalls(() => putPointer(0, new Float32Array(1), 'f', 'p'))).toThrow(TypeError)
  expect(() => recordCalls(() => recordCalls(() => undefined))).toThrow('recorded already')
  expect(failWith(6)).toBe(6)
})
