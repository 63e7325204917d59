import { StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
// Not exported. The waits of a communicator that cannot be aborted need no real communicator.
import { type Failure, Watchdog } from '../src/lifetime/watchdog.js'
import { rejection } from './fixtures/device.js'

describe('a watchdog', () => {
  const lost = new StatusError({
    library: 'NCCL',
    api: 'ncclCommGetAsyncError',
    status: 6,
    code: 'x',
    description: 'x',
    isSticky: true,
  })

  /** Returns a watchdog of an imaginary communicator with the given status and abort function. */
  function made(abort: (failure: Failure) => Promise<void> = async () => undefined) {
    const told = { status: 0 as number | Error, aborts: [] as Failure[] }
    const watchdog = new Watchdog({
      ...{ rank: 1, worldSize: 2, deviceOrdinal: 1, lastOperation: 'ncclSend' },
      status: () => {
        if (typeof told.status !== 'number') throw told.status
        return told.status
      },
      errorOf: () => lost,
      abort: (failure) => {
        told.aborts.push(failure)
        return abort(failure)
      },
    })
    return { watchdog, told }
  }
  const never = () => new Promise<never>(() => undefined)

  async function warningsDuring(work: () => Promise<unknown>): Promise<string[]> {
    const warnings: string[] = []
    const onWarning = (warning: Error): void => void warnings.push(warning.message)
    process.on('warning', onWarning)
    await work()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', onWarning)
    return warnings
  }

  test('passes late results only to drop after the communicator has failed', async () => {
    const { watchdog, told } = made()
    let finish = (_: string): void => undefined
    const work = new Promise<string>((resolve) => {
      finish = resolve
    })
    const dropped: string[] = []
    const wait = rejection(
      watchdog.guard(
        'split',
        { timeout: 5 },
        () => work,
        (value) => dropped.push(value),
      ),
    )
    const error = await wait
    expect(error).toMatchObject({
      name: 'CommunicatorAbortedError',
      operation: 'split',
      reason: 'timeout',
      rank: 1,
      lastOperation: 'ncclSend',
    })
    expect(told.aborts).toMatchObject([{ reason: 'timeout' }])
    finish('made')
    await new Promise((resolve) => setImmediate(resolve))
    expect(dropped).toEqual(['made'])
    expect(await rejection(watchdog.guard('ready', {}, never))).toMatchObject({ operation: 'ready', reason: 'timeout' })
    expect(watchdog.refusal('handle')).toMatchObject({ operation: 'handle', reason: 'timeout' })
    // Only the first failure counts.
    watchdog.fail({ reason: 'signal' })
    expect(told.aborts).toHaveLength(1)
    expect([watchdog.failure?.reason, watchdog.failing.aborted]).toEqual(['timeout', true])
  })

  test('attaches an error of the abort to each wait, or warns without a wait', async () => {
    const own = new Error('no abort')
    const { watchdog } = made(() => Promise.reject(own))
    const waits = ['split', 'ready'].map((operation) => rejection(watchdog.guard(operation, {}, never)))
    expect(
      await warningsDuring(async () => {
        watchdog.fail({ reason: 'signal', cause: 'lost' })
        for (const error of await Promise.all(waits)) {
          expect(error).toMatchObject({ reason: 'signal', cause: 'lost', suppressed: own })
        }
      }),
    ).toEqual([])
    for (const [reason, warnings] of [
      ['signal', ['a communicator could not be aborted: Error: no abort']],
      ['abort', []],
    ] as const) {
      expect(await warningsDuring(async () => made(() => Promise.reject(own)).watchdog.fail({ reason }))).toEqual(
        warnings,
      )
    }
  })

  test('polls NCCL during waits: an error or a missing answer is a failure', async () => {
    const refused = new Error('no answer')
    for (const [status, cause] of [
      [6, lost],
      [refused, refused],
    ] as const) {
      const { watchdog, told } = made()
      const wait = rejection(watchdog.guard('ready', {}, never))
      told.status = status
      expect(await wait).toMatchObject({ reason: 'async-error', cause })
    }
    // The same holds if the work itself succeeds.
    const { watchdog, told } = made()
    told.status = 6
    expect(await rejection(watchdog.guard('ready', {}, async () => 5))).toMatchObject({ reason: 'async-error' })
    const other = made()
    other.told.status = 7
    expect(await other.watchdog.guard('ready', {}, async () => 5)).toBe(5)
    // An error of the work belongs to the call, unless it reports a lost communicator.
    const mine = new Error('mine')
    expect(await rejection(other.watchdog.guard('split', {}, () => Promise.reject(mine)))).toBe(mine)
    expect(other.watchdog.failure).toBeUndefined()
    const fatal = await rejection(other.watchdog.guard('split', {}, () => Promise.reject(lost)))
    expect(fatal).toMatchObject({ reason: 'async-error', cause: lost })
  })

  test('rejects all waits on an interruption, except the interrupting call', async () => {
    const { watchdog } = made()
    const dropped: unknown[] = []
    const waiting = rejection(watchdog.guard('synchronize', {}, never))
    const done = rejection(
      watchdog.guard(
        'split',
        {},
        async () => 'made',
        (value) => dropped.push(value),
      ),
    )
    const ending = watchdog.guard('revoke', {}, async () => 'revoked')
    const rejectWaits = watchdog.interrupt('revoke')
    expect(await ending).toBe('revoked')
    rejectWaits()
    for (const [wait, operation] of [
      [waiting, 'synchronize'],
      [done, 'split'],
    ] as const) {
      expect(await wait).toMatchObject({ operation, reason: 'revoke' })
    }
    expect(dropped).toEqual(['made'])
    expect(watchdog.failure).toBeUndefined()
  })

  test('watches a signal until the communicator is destroyed', async () => {
    const [first, second] = [new AbortController(), new AbortController()]
    const { watchdog, told } = made()
    watchdog.watchSignal(first.signal)
    watchdog.stop()
    first.abort()
    expect(told.aborts).toEqual([])
    watchdog.watchSignal(second.signal)
    second.abort('lost')
    expect(told.aborts).toEqual([{ reason: 'signal', cause: 'lost' }])
  })
})
