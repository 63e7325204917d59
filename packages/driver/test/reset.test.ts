import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'

async function outcome(way: string): Promise<unknown> {
  // Node 20 has ArrayBuffer.prototype.transfer behind a flag.
  const flag = 'transfer' in ArrayBuffer.prototype ? [] : ['--harmony-rab-gsab-transfer']
  const nodeArguments = ['--expose-gc', '--no-warnings', ...flag]
  const result = await runFixture('reset.mjs', undefined, { arguments: [way], nodeArguments })
  expect(result.signal).toBeNull()
  expect(result.stderr.replace(/^shoal: software device.*\n/, '')).toBe('')
  expect(result.code).toBe(0)
  return JSON.parse(result.stdout)
}

test('a reset also invalidates objects whose Device was disposed earlier', async () => {
  expect(await outcome('afterDispose')).toEqual({
    reset: 'done',
    refusals: { stream: 'DisposedError', event: 'DisposedError', buffer: 'DisposedError' },
    length: 0,
    disposed: true,
    active: false,
  })
})

test('reset() is refused, and destroys nothing, while transferred page-locked memory is still readable', async () => {
  expect(await outcome('moved')).toEqual({
    refused: 'DeviceInUseError SHOAL_DEVICE_IN_USE',
    untouched: [1, 2, 3, 2 ** 20],
    refusedAfterDispose: 'DeviceInUseError SHOAL_DEVICE_IN_USE',
    read: 7,
    last: 'done',
    left: false,
  })
})

test('disposed page-locked memory does not block a reset', async () => {
  expect(await outcome('disposedPinned')).toBe('done')
})

test('a second reset() joins the first', async () => {
  expect(await outcome('twice')).toEqual(['done', 'done'])
})

test('a reset waits for work whose awaiting call was aborted, and keeps the process alive meanwhile', async () => {
  expect(await outcome('givenUp')).toEqual(['TimeoutError SHOAL_TIMEOUT', 'done'])
})

test('the event loop runs while a reset waits for the GPU, and the device refuses uses meanwhile', async () => {
  expect(await outcome('blocked')).toEqual(['timer', 'SHOAL_DEVICE_IN_USE', 'reset', 5])
})

test('reset() is refused in a worker', async () => {
  const source = `
    const { parentPort } = require('node:worker_threads')
    import(${JSON.stringify(import.meta.resolve('@shoal/driver'))}).then(async ({ Device }) => {
      parentPort.postMessage(await Device.get(0).reset().then(() => 'done', (error) => error.code))
    })`
  const worker = new Worker(source, { eval: true, env: { ...process.env, SHOAL_DEVICE: 'sim' } })
  const [[message]] = await Promise.all([once(worker, 'message'), once(worker, 'exit')])
  expect(message).toBe('SHOAL_DEVICE_IN_USE')
})
