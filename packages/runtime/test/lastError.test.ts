import { cudaGetLastError, cudaPeekAtLastError } from '@shoal/cuda-sys/runtime'
import { expect, test } from 'vitest'
import { delay } from './support/sim.js'

process.env['SHOAL_DEVICE'] = 'sim'
const { Stream } = await import('@shoal/runtime')

// Whoever calls libcudart beside the packages asks for the last error of the thread, and takes what he finds for his own.
test.each(['stream', 'event'])('to ask whether the work of a %s is over leaves no last error', (what) => {
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
