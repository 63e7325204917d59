import { callInContext, NativeMemory, offThread } from '@shoal/ffi'
import { putHandle } from '@shoal/ffi/calls'
import { StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { runNode } from './support/runNode.js'
import { failWith, library, storeCurrent, storeThread, waitUntilSet } from './support/stubCalls.js'

describe('calls off the JavaScript thread', () => {
  test('run in order on one other thread, without blocking the event loop', async () => {
    const out = NativeMemory.allocate(16)
    const enough = NativeMemory.allocate(4)
    let ticks = 0
    // The thread waits for these flags, so they are visible only if the event loop does not wait for the thread.
    const ticker = setInterval(() => {
      ticks += 1
      if (ticks > 5) enough.i32[0] = 1
    }, 5)
    const results = await offThread({ keep: [out] }, () => {
      storeThread(out.address)
      expect(waitUntilSet(enough)).toBe(0)
      storeThread(out.address + 8n)
    })
    clearInterval(ticker)
    expect(results).toEqual([0, 0, 0])
    expect(out.u64[0]).toBe(out.u64[1])
    expect(out.u64[0]).not.toBe(library.bindBig('thread_id', 0, 0, 'u64')())
    expect(ticks).toBeGreaterThan(5)
  })

  test('stop at the first error, unless stopOnError is false', async () => {
    const sequence = (): void => {
      failWith(0)
      failWith(7)
      failWith(9)
    }
    expect(await offThread({}, sequence)).toEqual([0, 7])
    expect(await offThread({ stopOnError: false }, sequence)).toEqual([0, 7, 9])
  })

  test('64 blocking calls at once do not wait for each other', async () => {
    const flags = Array.from({ length: 64 }, () => NativeMemory.allocate(8))
    const calls = flags.map((flag) => offThread({ keep: [flag] }, () => waitUntilSet(flag)))
    // The last call ends first: all others still wait for their flags at that time.
    for (const [index, flag] of [...flags.entries()].reverse()) {
      flag.i32[0] = 1
      expect(await calls[index]).toEqual([0])
    }
  })

  test('have the context current on their thread only, and reject if it cannot become current', async () => {
    const out = NativeMemory.allocate(16)
    await offThread({ context: 5n }, () => storeCurrent(out))
    expect(out.u64[0]).toBe(5n)
    await offThread({}, () => storeCurrent(out))
    expect(out.u64[0]).toBe(0n)
    await expect(offThread({ context: 666n }, () => failWith(0))).rejects.toMatchObject({ status: 709 })
    await expect(offThread({ context: 666n }, () => failWith(0))).rejects.toBeInstanceOf(StatusError)
  })

  test('return no stale result while they are recorded', async () => {
    const word = library.bindBig('give_word', 0, 1, 'u64')
    const give = (value: bigint): bigint => {
      putHandle(0, value, 'give_word', 'value')
      return word()
    }
    expect(give(77n)).toBe(77n)
    const recorded: bigint[] = []
    const results = await offThread({ results: 'value' }, () => recorded.push(give(5n), give(6n)))
    expect(recorded).toEqual([0n, 0n])
    expect(results).toEqual([5n, 6n])
  })

  test('refuse arrays of the JavaScript heap, and a failed recording leaves nothing behind', async () => {
    await expect(offThread({}, () => storeThread(new BigUint64Array(1)))).rejects.toThrow(
      /store_thread: out must be NativeMemory/,
    )
    expect(failWith(3)).toBe(3)
    await expect(
      offThread({}, () => {
        throw new Error('mine')
      }),
    ).rejects.toThrow('mine')
    expect(failWith(4)).toBe(4)
  })

  test('leave no recording, no context and nothing that keeps the process alive if refused', async () => {
    const out = NativeMemory.allocate(8)
    const fine = (): void => void failWith(0)
    const background = Object.freeze({})
    for (const [options, record, message] of [
      [{ context: 5 }, fine, /^offThread: context must be a bigint, not 5/],
      [{ context: 2n ** 64n }, fine, /context must be a bigint/],
      [{ lane: {} }, fine, /^offThread: lane must be a Lane, not a plain object/],
      [{ keep: 5 }, fine, /^offThread: keep must be an array, not 5/],
      [{ stop: true }, fine, /^offThread: options must have only the keys context, .*, not 'stop'/],
      [{ results: 'both' }, fine, /results must be 'status' or 'value', not 'both'/],
      [{ background }, fine, /^offThread: background must be a plain object that can be written to/],
      [{}, undefined, /record must be a function/],
      [{}, async () => failWith(0), /record must be a function that is not asynchronous/],
      [{}, () => Promise.reject(new Error('of nobody')), /record must be a function that is not asynchronous/],
    ] as const) {
      await expect(offThread(options as never, record as never)).rejects.toThrow(message)
      expect(failWith(3)).toBe(3)
    }
    await offThread({}, () => callInContext(77n))
    storeCurrent(out)
    expect(out.u64[0]).toBe(0n)
    const run = runNode(`
      for (const options of [{ context: 5 }, { lane: {} }, { background: Object.freeze({}) }])
        await offThread(options, () => sleepMs(0)).catch(() => {})
      const event = { context: 0n, event: memory.address, query: library.address('query'), notReady: 600 }
      for (const options of [{ background: Object.freeze({}) }, { signal: {} }]) await waitForEvent(event, options).catch(() => {})
      console.log('ending')`)
    expect(run).toMatchObject({ status: 0, stdout: 'ending\n' })
  })
})

test('if the system cannot create a thread, off-thread calls reject, and later calls work', () => {
  const run = runNode(`
    const { createLane } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi'))})
    const { putSize } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi/calls'))})
    const setSize = library.bind('set_stack_size', 0, 1)
    const setStackSize = (bytes) => { putSize(0, bytes, 'set_stack_size', 'bytes'); return setSize() }
    const fill = library.bind('fill', 0, 3)
    const mark = (index) => () => {
      putPointer(0, memory.address + BigInt(index), 'fill', 'target')
      putI32(1, 1, 'fill', 'n')
      putI32(2, 1 + index, 'fill', 'value')
      fill()
    }
    const lane = createLane()
    memory.bytes.fill(0)
    setStackSize(2 ** 46)
    const calls = [offThread({}, mark(0)), offThread({ lane }, mark(1))]
    setStackSize(0)
    const refused = await Promise.allSettled(calls)
    await Promise.all([offThread({}, mark(2)), offThread({ lane }, mark(3))])
    console.log(JSON.stringify([refused.map((each) => each.reason?.message), [...memory.bytes]]))`)
  expect(run.stderr).toBe('')
  expect(JSON.parse(run.stdout)).toEqual([
    [expect.stringContaining('thread'), expect.stringContaining('thread')],
    [0, 0, 3, 4, 0, 0, 0, 0],
  ])
})
