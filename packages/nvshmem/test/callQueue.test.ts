import { existsSync, readdirSync } from 'node:fs'
import {
  type CUdevice,
  cuCtxGetCurrent,
  cuDevicePrimaryCtxRetain,
  cuInit,
  ensureContextFunctions,
} from '@shoal/cuda-sys/driver'
import { NativeMemory, useSoftwareDevice } from '@shoal/ffi'
import { AbortedError, DisposedError, memoryProtocol, TimeoutError } from '@shoal/types'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { openTimers } from '../../ffi/test/support/openTimers.js'
// Not exported. Its actions between two calls cannot be observed from outside.
import { CallQueue } from '../src/queue/callQueue.js'

let context: bigint
const queues: CallQueue[] = []
const current = NativeMemory.allocate(8)
/** A call that returns at once. */
const look = (): unknown => cuCtxGetCurrent(current)

beforeAll(() => {
  useSoftwareDevice({ devices: 1 })
  cuInit(0)
  ensureContextFunctions()
  const out = new BigUint64Array(1)
  cuDevicePrimaryCtxRetain(out, 0 as CUdevice)
  context = out[0] as bigint
})

afterEach(() => {
  for (const queue of queues.splice(0)) queue.close('Session')
})

function made(defaults: ConstructorParameters<typeof CallQueue>[1] = {}): CallQueue {
  const queue = new CallQueue(context, defaults)
  queues.push(queue)
  return queue
}

/** Creates a promise for a call to wait for, and a function that resolves it. */
function gate() {
  let open = (): void => undefined
  let fail = (_: unknown): void => undefined
  const after = new Promise<void>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { after, open, fail }
}

test('memory of a queued call is freed as soon as the thread has received it', async () => {
  const queue = made()
  const { after, open } = gate()
  const [own, free] = [NativeMemory.allocate(8), NativeMemory.allocate(8)]
  const first = queue.run('first', look, { after })
  const second = queue.run('second', look, { keep: [own], operands: [{}] })
  queue.free(own)
  queue.free(free)
  expect([own.disposed, free.disposed]).toEqual([false, true])
  open()
  await Promise.all([first, second])
  expect(own.disposed).toBe(true)
})

test('memory of a call that never runs is freed, after a failure or after its caller stopped waiting', async () => {
  const queue = made()
  const { after, fail } = gate()
  const own = NativeMemory.allocate(8)
  let isMade = false
  const record = (): unknown => {
    isMade = true
    return look()
  }
  const call = queue.run('call', record, { after, keep: [own] })
  const behind = queue.run('behind', look)
  queue.free(own)
  fail(new Error('before'))
  await expect(call).rejects.toThrow('before')
  await behind
  expect([own.disposed, isMade]).toEqual([true, false])
  const left = NativeMemory.allocate(8)
  queue.run('left', record, { after: gate().after, keep: [left] })
  queue.free(left)
  queue.abandon('Session')
  expect([left.disposed, queue.underWay]).toEqual([true, undefined])
  await expect(queue.run('late', record)).rejects.toThrow(DisposedError)
  expect(isMade).toBe(false)
})

test.runIf(existsSync('/proc/self/task'))(
  "the queue's thread ends with the queue, also if calls are left",
  async () => {
    const threads = (): number => readdirSync('/proc/self/task').length
    for (const end of ['close', 'abandon'] as const) {
      const before = threads()
      const many = Array.from({ length: 8 }, () => made())
      await Promise.all(many.map((queue) => queue.run('call', look)))
      // Other code starts and ends fewer than half as many threads meanwhile.
      expect(threads()).toBeGreaterThan(before + 4)
      for (const queue of many) {
        if (end === 'abandon') queue.run('left', look, { after: gate().after }).catch(() => undefined)
        queue[end]('Session')
      }
      await expect.poll(threads, { timeout: 300_000 }).toBeLessThan(before + 4)
    }
  },
)

test('a call that only starts work times out while queued, and still runs in its turn', async () => {
  const queue = made({ timeout: 20 })
  const { after, open } = gate()
  const calls: string[] = []
  const first = queue.run('first', look, { after, wait: { timeout: 600_000 } })
  const started = queue.start('start', () => calls.push('start'))
  await expect(started).rejects.toBeInstanceOf(TimeoutError)
  await expect(started).rejects.toMatchObject({ operation: 'start', timeout: 20 })
  expect([calls, queue.stuckIn]).toEqual([[], undefined])
  open()
  await first
  await queue.ask('ask', () => calls.push('ask'))
  expect(calls).toEqual(['start', 'ask'])
  // Runs at once if no call is in progress, and then needs no limit.
  await queue.start('now', () => calls.push('now'))
  expect(calls).toEqual(['start', 'ask', 'now'])
})

test('a look-up runs in its turn, at once if the queue is idle, and not after the end', async () => {
  const queue = made()
  const { after, open } = gate()
  const order: string[] = []
  const first = queue.run('first', look, { after }).then(() => order.push('first'))
  const second = queue.ask('second', look).then(() => order.push('second'))
  await new Promise((resolve) => setImmediate(resolve))
  expect(order).toEqual([])
  open()
  await Promise.all([first, second])
  expect(order).toEqual(['first', 'second'])
  queue.close('Session')
  await expect(queue.ask('late', look)).rejects.toThrow(DisposedError)
  expect([queue.idle, queue.takesCalls]).toEqual([false, false])
})

test('a fired signal rejects calls, and look-ups still run', async () => {
  const before = made({ signal: AbortSignal.abort('before') })
  await expect(before.run('call', look)).rejects.toMatchObject({ code: 'SHOAL_ABORTED', cause: 'before' })
  expect(() => before.callSync('call', look)).toThrow(AbortedError)
  expect(before.callSync('brief', () => 5, true)).toBe(5)
  expect(await before.ask('ask', () => 6 as never)).toBe(6)
  const controller = new AbortController()
  const queue = made({ signal: controller.signal })
  expect([queue.idle, queue.takesCalls]).toEqual([true, true])
  const waiting = queue.run('waiting', look, { after: gate().after })
  controller.abort('later')
  await expect(waiting).rejects.toMatchObject({ operation: 'waiting', cause: 'later' })
  expect([queue.idle, queue.takesCalls, queue.stuckIn]).toEqual([false, false, undefined])
  // After its end the queue removes its listener.
  const ended = new AbortController()
  const over = made({ signal: ended.signal })
  over.close('Session')
  ended.abort('too late')
  expect(over.refusal('call')).toBeInstanceOf(DisposedError)
})

test('a queued call whose operands were disposed does not run, and names the disposed object', async () => {
  const queue = made()
  const { after, open } = gate()
  const first = queue.run('first', look, { after })
  const gone = {
    get [memoryProtocol](): never {
      throw new DisposedError({ object: 'Something' })
    },
  }
  const mine = new Error('mine')
  const throwing = {
    get [memoryProtocol](): never {
      throw mine
    },
  }
  const calls = Promise.allSettled([
    queue.run('run', look, { operands: [gone] }),
    queue.start('start', look, [gone]),
    queue.run('own', look, { operands: [throwing] }),
  ])
  open()
  await first
  const reasons = (await calls).map((call) => (call.status === 'rejected' ? call.reason : 'nothing'))
  for (const [index, operation] of ['run', 'start'].entries()) {
    expect(reasons[index]).toBeInstanceOf(DisposedError)
    expect(reasons[index]).toMatchObject({ object: 'Something', operation })
  }
  expect(reasons[2]).toBe(mine)
  expect(queue.underWay).toBeUndefined()
})

test('a completed call leaves no timer', async () => {
  const timers = openTimers()
  const before = timers()
  const queue = made({ timeout: 600_000 })
  const { after, open } = gate()
  const controller = new AbortController()
  const calls = Promise.allSettled([
    queue.run('first', look, { after }),
    queue.start('started', look),
    queue.run('given up', look, { wait: { signal: controller.signal, timeout: 300_000 } }),
    queue.start('given up as well', look),
  ])
  expect(timers()).toBe(before + 4)
  controller.abort()
  queue.giveUpAll((operation) => new Error(operation))
  expect(timers()).toBe(before)
  open()
  await calls
  const next = gate()
  const inTurn = [queue.run('next', look, { after: next.after }), queue.start('in its turn', look)]
  next.open()
  await Promise.all(inTurn)
  expect(timers()).toBe(before)
})
