import { cudaGetLastError, cudaPeekAtLastError } from '@shoal/cuda-sys/runtime'
import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const { Stream } = await import('@shoal/runtime')

// Whoever calls libcudart beside the packages asks for the last error of the thread, and takes what he finds for his own.
test('a question whether work is over leaves no last error', async () => {
  using stream = Stream.create()
  cudaGetLastError()
  // It is called by this thread, which has no time before the next `await`.
  const called = stream.hostFunction(() => undefined)
  using event = stream.record()
  expect([stream.query(), cudaPeekAtLastError()]).toEqual([false, 0])
  expect([event.query(), cudaPeekAtLastError()]).toEqual([false, 0])
  await called
  await event.synchronize()
  expect([stream.query(), event.query(), cudaPeekAtLastError()]).toEqual([true, true, 0])
})
