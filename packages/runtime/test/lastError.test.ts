import { cudaGetLastError, cudaPeekAtLastError, cudaSetDevice } from '@shoal/cuda-sys/runtime'
import { expect, test } from 'vitest'
import { delay } from './support/sim.js'

process.env['SHOAL_DEVICE'] = 'sim'
const { lastError, peekLastError, StatusError, statusText, Stream } = await import('@shoal/runtime')

// Other code that calls libcudart reads the thread's last error and treats it as its own.
test.each(['stream', 'event'])('querying whether a %s has completed leaves no last error', (what) => {
  using stream = Stream.create()
  cudaGetLastError()
  delay(stream, 100)
  using event = stream.record()
  const asked = what === 'stream' ? stream : event
  for (let isOver = false; !isOver; ) {
    isOver = asked.query()
    expect(cudaPeekAtLastError()).toBe(0)
  }
})

test('the last error of the thread is kept until it is read', () => {
  cudaGetLastError()
  expect([peekLastError(), lastError()]).toEqual([undefined, undefined])
  expect(cudaSetDevice(99)).toBe(101)
  for (let time = 0; time < 2; time += 1) {
    expect(peekLastError()).toBeInstanceOf(StatusError)
    expect(peekLastError()).toMatchObject({
      status: 101,
      message: expect.stringContaining('cudaErrorInvalidDevice'),
      api: 'cudaPeekAtLastError',
    })
  }
  expect(lastError()).toMatchObject({
    status: 101,
    message: expect.stringContaining('cudaErrorInvalidDevice'),
    api: 'cudaGetLastError',
  })
  expect([peekLastError(), lastError()]).toEqual([undefined, undefined])
})

test('statusText() describes a status code', () => {
  expect(statusText(0)).toEqual({ name: 'cudaSuccess', description: expect.any(String) })
  expect(statusText(101).name).toBe('cudaErrorInvalidDevice')
  expect(() => statusText(2 ** 31 - 1)).not.toThrow()
  for (const bad of [-1, 2 ** 31]) {
    expect(() => statusText(bad)).toThrow(RangeError)
    expect(() => statusText(bad)).toThrow(/^statusText: status must be /)
  }
})
