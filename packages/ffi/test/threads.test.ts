import { constants } from 'node:buffer'
import { execFileSync, spawnSync } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { Worker } from 'node:worker_threads'
import {
  callInContext,
  createHostCallback,
  createLane,
  enterContext,
  leaveContext,
  NativeMemory,
  offThread,
  setContextFunctions,
  waitForEvent,
} from '@shoal/ffi'
import { nestedCall, putHandle, putI32, putPointer, putSize } from '@shoal/ffi/calls'
import { AbortedError, StatusError, TimeoutError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { stub, stubFile } from './fixtures/stub.js'

const library = stub()
const one = (name: string, put: (value: never) => void) => {
  const call = library.bind(name, 0, 1)
  return (value: unknown): number => {
    put(value as never)
    return call()
  }
}
const sleepMs = one('sleep_ms', (value) => putI32(0, value, 'sleep_ms', 'ms'))
const failWith = one('fail_with', (value) => putI32(0, value, 'fail_with', 'code'))
const waitUntilSet = (flag: NativeMemory): number => {
  const call = library.bind('wait_until_set', 0, 2)
  putPointer(0, flag, 'wait_until_set', 'flag')
  putI32(1, 20_000, 'wait_until_set', 'ms')
  return call()
}
const storeThread = one('store_thread', (value) => putPointer(0, value, 'store_thread', 'out'))
const storeCurrent = one('store_current', (value) => putPointer(0, value, 'store_current', 'out'))
setContextFunctions(library.address('get_current'), library.address('set_current'))

describe('calls off the JavaScript thread', () => {
  test('run in order on one other thread, while the event loop goes on', async () => {
    const out = NativeMemory.allocate(16)
    const enough = NativeMemory.allocate(4)
    let ticks = 0
    // The thread waits for these, so they are seen only where the event loop does not wait for the thread.
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

  test('the first error ends the sequence, unless told otherwise', async () => {
    const sequence = (): void => {
      failWith(0)
      failWith(7)
      failWith(9)
    }
    expect(await offThread({}, sequence)).toEqual([0, 7])
    expect(await offThread({ stopOnError: false }, sequence)).toEqual([0, 7, 9])
  })

  test('64 blocking calls at once do not wait for each other', async () => {
    const start = performance.now()
    await Promise.all(Array.from({ length: 64 }, () => offThread({}, () => sleepMs(200))))
    expect(performance.now() - start).toBeLessThan(64 * 200 * 0.5)
  })

  test('a lane keeps the order and the thread', async () => {
    const lane = createLane()
    const out = NativeMemory.allocate(8 * 20)
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => offThread({ lane }, () => storeThread(out.address + BigInt(8 * i)))),
    )
    expect(new Set(out.u64).size).toBe(1)
    lane.dispose()
    await expect(offThread({ lane }, () => failWith(0))).rejects.toThrow(/lane is disposed/)
  })

  test('the context is current there and only there; a context that cannot be made current rejects', async () => {
    const out = NativeMemory.allocate(16)
    await offThread({ context: 5n }, () => storeCurrent(out))
    expect(out.u64[0]).toBe(5n)
    await offThread({}, () => storeCurrent(out))
    expect(out.u64[0]).toBe(0n)
    await expect(offThread({ context: 666n }, () => failWith(0))).rejects.toMatchObject({ status: 709 })
    await expect(offThread({ context: 666n }, () => failWith(0))).rejects.toBeInstanceOf(StatusError)
  })

  test('arrays of the JavaScript heap are refused, and a failed recording leaves nothing behind', async () => {
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

  test('memory of no size, or of more than an ArrayBuffer can have, is refused', () => {
    for (const size of [-1, 1.5, Number.NaN, '5', constants.MAX_LENGTH + 1, Number.MAX_SAFE_INTEGER]) {
      expect(() => NativeMemory.allocate(size as number)).toThrow(RangeError)
    }
  })

  test('disposed memory is freed at once, not when the collector comes', () => {
    const before = process.memoryUsage().rss
    for (let i = 0; i < 40; i++) {
      const memory = NativeMemory.allocate(64 * 2 ** 20)
      expect(memory.bytes.length).toBe(64 * 2 ** 20)
      memory.dispose()
      expect(memory.byteLength).toBe(0)
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(512 * 2 ** 20)
  })

  test('what is refused leaves nothing behind: no recording, no context, nothing that keeps the process alive', async () => {
    const out = NativeMemory.allocate(8)
    const fine = (): void => void failWith(0)
    const background = Object.freeze({})
    for (const [options, record, message] of [
      [{ context: 5 }, fine, /context must be a bigint of 64 bits, got 5/],
      [{ context: 2n ** 64n }, fine, /context must be a bigint/],
      [{ lane: {} }, fine, /lane must come from createLane/],
      [{ keep: 5 }, fine, /not iterable/],
      [{ background }, fine, /not extensible/],
      [{}, undefined, /record must be a function/],
      [{}, async () => failWith(0), /must not be asynchronous/],
      [{}, () => Promise.reject(new Error('of nobody')), /must not be asynchronous/],
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

  test('memory disposed while its call is queued stays until the call has run', async () => {
    const lane = createLane()
    const memory = NativeMemory.allocate(1 << 20)
    const slow = offThread({ lane }, () => sleepMs(50))
    const fill = library.bind('fill', 0, 3)
    const filled = offThread({ lane }, () => {
      putPointer(0, memory, 'fill', 'target')
      putSize(1, memory.byteLength, 'fill', 'n')
      putI32(2, 1, 'fill', 'value')
      fill()
    })
    memory.dispose()
    expect(await slow).toEqual([0])
    expect(await filled).toEqual([0])
  })
})

describe('the current context', () => {
  test('is switched and restored, nested, and not touched when it is current already', () => {
    const out = NativeMemory.allocate(8)
    const current = (): bigint => {
      storeCurrent(out)
      return out.u64[0] as bigint
    }
    const outer = enterContext(10n)
    expect(outer).toBe(0n)
    expect(enterContext(10n)).toBeUndefined()
    const inner = enterContext(11n)
    expect(current()).toBe(11n)
    leaveContext(inner)
    expect(current()).toBe(10n)
    leaveContext(outer)
    expect(current()).toBe(0n)
    expect(() => enterContext(666n)).toThrow(StatusError)
    expect(current()).toBe(0n)
  })
})

describe('the context of one call', () => {
  const out = NativeMemory.allocate(8)
  const seen = (): bigint => {
    storeCurrent(out)
    return out.u64[0] as bigint
  }

  test('is current in that call only', () => {
    callInContext(21n)
    expect(seen()).toBe(21n)
    expect(seen()).toBe(0n)
    const previous = enterContext(9n)
    callInContext(22n)
    expect(seen()).toBe(22n)
    expect(seen()).toBe(9n)
    callInContext(9n)
    expect(seen()).toBe(9n)
    leaveContext(previous)
  })

  test('is taken back when memory that is gone is refused', () => {
    const gone = NativeMemory.allocate(8)
    gone.dispose()
    callInContext(23n)
    expect(() => storeCurrent(gone)).toThrow(/NativeMemory/)
    expect(seen()).toBe(0n)
  })

  test('that cannot be made current: the call is not made and gives the status', () => {
    out.u64[0] = 5n
    callInContext(666n)
    expect(storeCurrent(out)).toBe(709)
    expect(out.u64[0]).toBe(5n)
  })

  test('is taken back when the arguments are refused or the symbol is missing', () => {
    callInContext(23n)
    expect(() => failWith(1.5)).toThrow(RangeError)
    expect(seen()).toBe(0n)
    callInContext(23n)
    expect(() => library.bind('absent', 0, 1)).toThrow()
    expect(seen()).toBe(0n)
  })

  test('goes with a recorded call to its thread', async () => {
    const cells = NativeMemory.allocate(24)
    await offThread({ context: 30n }, () => {
      storeCurrent(cells.address)
      callInContext(31n)
      storeCurrent(cells.address + 8n)
      storeCurrent(cells.address + 16n)
    })
    expect([...cells.u64]).toEqual([30n, 31n, 30n])
  })

  test('a nested call leaves the block, the context and the recording as they were', async () => {
    const cells = NativeMemory.allocate(8)
    const status = library.bind('fail_with', 0, 1)
    const results = await offThread({ stopOnError: false }, () => {
      callInContext(40n)
      putPointer(0, cells, 'store_current', 'out')
      expect(nestedCall(() => putI32(0, 17, 'fail_with', 'code'), status)).toBe(17)
      library.bind('store_current', 0, 1)()
    })
    expect(results).toEqual([0])
    expect(cells.u64[0]).toBe(40n)
  })
})

describe('waiting', () => {
  const query = library.address('query')
  const countdown = (left: number, status: number): NativeMemory => {
    const memory = NativeMemory.allocate(8)
    memory.i32.set([left, status])
    return memory
  }

  test.each([
    [0, 0],
    [1, 0],
    [50, 0],
    [3, 719],
  ])('asks %i times, then reports status %i', async (left, status) => {
    const memory = countdown(left, status)
    expect(await waitForEvent({ context: 0n, event: memory.address, query, notReady: 600 })).toBe(status)
    expect(memory.i32[0]).toBe(-1)
  })

  test('2000 waits at once', async () => {
    const memories = Array.from({ length: 2000 }, (_, i) => countdown(i % 40, i % 500))
    const statuses = await Promise.all(
      memories.map((m) => waitForEvent({ context: 0n, event: m.address, query, notReady: 600 })),
    )
    expect(statuses).toEqual(memories.map((_, i) => i % 500))
  })

  test('a context that is gone ends the wait with its error', async () => {
    expect(await waitForEvent({ context: 666n, event: countdown(5, 0).address, query, notReady: 600 })).toBe(709)
  })

  test('what is no query is refused, and holds nothing up', async () => {
    const good = { context: 0n, event: 1n, query, notReady: 600 }
    for (const wrong of [
      { query: 0n },
      { context: 5 },
      { event: undefined },
      { event: 2n ** 64n },
      { notReady: Number.NaN },
    ]) {
      await expect(waitForEvent({ ...good, ...wrong } as never)).rejects.toThrow(TypeError)
    }
  })

  test('thousands of waits are aborted without stalling the thread', async () => {
    const never = countdown(2 ** 31 - 1, 0)
    const controller = new AbortController()
    const waits = Array.from({ length: 3000 }, () =>
      waitForEvent({ context: 0n, event: never.address, query, notReady: 600 }, { signal: controller.signal }),
    )
    const all = Promise.allSettled(waits)
    await new Promise((resolve) => setTimeout(resolve, 5))
    controller.abort()
    expect((await all).every(({ status }) => status === 'rejected')).toBe(true)
  })

  test('abort during a query that blocks: the thread goes on, and the wait ends with the query', async () => {
    const flags = NativeMemory.allocate(8)
    const held = { context: 0n, event: flags.address, query: library.address('held_query'), notReady: 600 }
    const controller = new AbortController()
    let ended = false
    const wait = waitForEvent(held, { signal: controller.signal, timeout: 1000 }).finally(() => {
      ended = true
    })
    const rejected = expect(wait).rejects.toMatchObject({ name: 'AbortedError', cause: 'first' })
    await expect.poll(() => flags.i32[0], { timeout: 20_000, interval: 1 }).toBe(1)
    controller.abort('first')
    // Another wait, which nobody asks for now, ends at once.
    const other = new AbortController()
    const never = countdown(2 ** 31 - 1, 0)
    const idle = waitForEvent({ context: 0n, event: never.address, query, notReady: 600 }, { signal: other.signal })
    other.abort()
    await expect(idle).rejects.toBeInstanceOf(AbortedError)
    // Past the timeout, which comes second and changes nothing.
    await new Promise((resolve) => setTimeout(resolve, 1100))
    expect(ended).toBe(false)
    flags.i32[1] = 1
    await rejected
  })

  test('many waits on one signal are one listener, which goes with the last of them', async () => {
    const { signal } = new AbortController()
    const event = (left: number) => ({ context: 0n, event: countdown(left, 0).address, query, notReady: 600 })
    const listeners = () => getEventListeners(signal, 'abort').length
    for (let round = 0; round < 2; round += 1) {
      const waits = Array.from({ length: 30 }, (_, i) => waitForEvent(event(i), { signal }))
      expect(listeners()).toBe(1)
      await Promise.all(waits)
      expect(listeners()).toBe(0)
    }
    await expect(waitForEvent(event(3), { signal: {} as AbortSignal })).rejects.toThrow(/must be an AbortSignal/)
  })

  test('abort and timeout end the wait, never the work', async () => {
    const never = countdown(2 ** 31 - 1, 0)
    const forever = { context: 0n, event: never.address, query, notReady: 600 }
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('enough')), 20)
    await expect(waitForEvent(forever, { signal: controller.signal })).rejects.toBeInstanceOf(AbortedError)
    await expect(waitForEvent(forever, { signal: controller.signal })).rejects.toBeInstanceOf(AbortedError)
    await expect(waitForEvent(forever, { timeout: 20 })).rejects.toBeInstanceOf(TimeoutError)
    await expect(waitForEvent(forever, { timeout: Number.NaN })).rejects.toBeInstanceOf(RangeError)
    const asked = never.i32[0]
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(never.i32[0]).toBe(asked)
  })
})

describe('callbacks', () => {
  test('from a foreign thread arrive in order; after dispose they do nothing', async () => {
    const seen: number[] = []
    const callback = createHostCallback((status) => seen.push(status))
    const call = library.bind('call_from_thread', 0, 2)
    const callFromThread = (): void => {
      putHandle(0, callback.functionAddress, 'call', 'fn')
      putHandle(1, callback.userData, 'call', 'data')
      call()
    }
    callFromThread()
    expect(seen).toEqual([])
    await expect.poll(() => seen, { timeout: 20_000 }).toEqual([0, 0, 0])
    callback.dispose()
    callback.dispose()
    callFromThread()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(seen).toHaveLength(3)
  })

  test('what is no function is refused', () => {
    expect(() => createHostCallback(5 as never)).toThrow(/fn must be a function/)
  })

  test('the stream shape gives the status', async () => {
    const status = await new Promise<number>((resolve) => {
      const callback = createHostCallback(resolve, 'stream')
      const call = library.bind('call_stream', 0, 3)
      putHandle(0, callback.functionAddress, 'call', 'fn')
      putI32(1, 719, 'call', 'status')
      putHandle(2, callback.userData, 'call', 'data')
      call()
      setTimeout(callback.dispose, 1000).unref()
    })
    expect(status).toBe(719)
  })
})

// Run as text, so that they exercise the built package and nothing of the test runner.
const prelude = `
  const { defineLibrary, NativeMemory, offThread, waitForEvent, createHostCallback } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi'))})
  const { putI32, putPointer } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi/calls'))})
  const library = defineLibrary({ id: 'stub', title: 'stub', environment: 'X', linux: ['x'], hint: 'x' })
  library.setPath(${JSON.stringify(stubFile())})
  const sleep = library.bind('sleep_ms', 0, 1)
  const sleepMs = (ms) => { putI32(0, ms, 'sleep_ms', 'ms'); return sleep() }
  const memory = NativeMemory.allocate(8)
  memory.i32[0] = 2 ** 31 - 1
  const inFlight = () => [
    offThread({ keep: [memory] }, () => sleepMs(1500)),
    waitForEvent({ context: 0n, event: memory.address, query: library.address('query'), notReady: 600 }),
  ]
`

function runNode(body: string) {
  return spawnSync(process.execPath, ['--input-type=module', '-e', prelude + body], {
    encoding: 'utf8',
    timeout: 30_000,
  })
}

describe('endings', () => {
  test('the process exits with calls and waits in flight, at once and cleanly', () => {
    const start = performance.now()
    const run = runNode('inFlight(); setTimeout(() => process.exit(5), 50)')
    expect({ status: run.status, signal: run.signal, stderr: run.stderr }).toEqual({
      status: 5,
      signal: null,
      stderr: '',
    })
    expect(performance.now() - start).toBeLessThan(15_000)
  })

  test('a pending call keeps the process alive until it ends; an idle addon does not', () => {
    const run = runNode('offThread({}, () => sleepMs(200)).then(() => console.log("done"))')
    expect(run.stdout).toBe('done\n')
    expect(run.status).toBe(0)
    expect(runNode('createHostCallback(() => {})').status).toBe(0)
  })

  test('work in the background lets the process end', () => {
    const run = runNode(`
      const wait = {}, call = {}
      waitForEvent({ context: 0n, event: memory.address, query: library.address('query'), notReady: 600 }, { background: wait })
      offThread({ background: call, keep: [memory] }, () => sleepMs(20_000))
      wait.release(); wait.release(); call.release()
      console.log('ending')`)
    expect({ status: run.status, stdout: run.stdout }).toEqual({ status: 0, stdout: 'ending\n' })
  })

  test('a query that hangs holds up neither the end of a worker nor that of the process', () => {
    const worker = `${prelude}
      const { workerData } = await import('node:worker_threads')
      waitForEvent({ context: 0n, event: workerData, query: library.address('held_query'), notReady: 600 })`
    const run = runNode(`
      const { Worker } = await import('node:worker_threads')
      const flags = NativeMemory.allocate(8)
      const options = { eval: true, execArgv: ['--input-type=module'], workerData: flags.address }
      const worker = new Worker(${JSON.stringify(worker)}, options)
      while (flags.i32[0] === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      const background = {}
      waitForEvent({ context: 0n, event: memory.address, query: library.address('query'), notReady: 600 }, { background })
      const start = performance.now()
      await worker.terminate()
      background.release()
      console.log(performance.now() - start < 10_000)`)
    expect(run).toMatchObject({ status: 0, stdout: 'true\n' })
  })

  test('a worker that exits in a callback, with more of them waiting, ends in peace', async () => {
    const code = `${prelude}
      const { putHandle } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi/calls'))})
      let calls = 0
      const callback = createHostCallback(() => { if (++calls === 40) process.exit(7) })
      const call = library.bind('call_from_thread', 0, 2)
      for (let i = 0; i < 40; i++) {
        putHandle(0, callback.functionAddress, 'c', 'f'); putHandle(1, callback.userData, 'c', 'd'); call()
        offThread({}, () => sleepMs(1))
      }
      setTimeout(() => {}, 20_000)`
    const codes = Array.from({ length: 4 }, () => {
      const worker = new Worker(code, { eval: true, execArgv: ['--input-type=module'] })
      return new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
    })
    expect(await Promise.all(codes)).toEqual([7, 7, 7, 7])
  })

  test('an exception in a callback is an uncaught exception of the program', () => {
    const run = runNode(`
      const callback = createHostCallback(() => { throw new Error('from the callback') })
      const call = library.bind('call_from_thread', 0, 2)
      const { putHandle } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi/calls'))})
      putHandle(0, callback.functionAddress, 'c', 'f'); putHandle(1, callback.userData, 'c', 'd'); call()
      setTimeout(() => {}, 500)`)
    expect(run.status).toBe(1)
    expect(run.stderr).toContain('from the callback')
  })

  test('workers use the addon at once, and end with calls in flight', async () => {
    const code = `${prelude}
      const { parentPort } = await import('node:worker_threads')
      const fill = await offThread({ keep: [memory] }, () => sleepMs(10))
      inFlight()
      parentPort.postMessage(fill)`
    const rounds = Array.from({ length: 6 }, async () => {
      const worker = new Worker(code, { eval: true, execArgv: ['--input-type=module'] })
      const message = await new Promise((resolve, reject) => {
        worker.once('message', resolve)
        worker.once('error', reject)
      })
      await worker.terminate()
      return message
    })
    expect(await Promise.all(rounds)).toEqual(Array(6).fill([0]))
    // What they left in flight ends after them, without harm.
    await new Promise((resolve) => setTimeout(resolve, 1700))
    expect(await offThread({}, () => failWith(0))).toEqual([0])
  })

  test('a process whose only user of the addon is a worker survives that worker', () => {
    const worker = JSON.stringify(`${prelude} inFlight(); setTimeout(() => process.exit(), 50)`)
    const body = `
      const { Worker } = await import('node:worker_threads')
      const worker = new Worker(${worker}, { eval: true, execArgv: ['--input-type=module'] })
      worker.on('error', (error) => { console.error(error); process.exit(9) })
      worker.on('exit', () => setTimeout(() => console.log('alive'), 1800))`
    const text = execFileSync(process.execPath, ['--input-type=module', '-e', body], {
      encoding: 'utf8',
      timeout: 30_000,
    })
    expect(text).toBe('alive\n')
  })
})
