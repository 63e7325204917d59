import { createHostCallback } from '@shoal/ffi'
import { putHandle, putI32 } from '@shoal/ffi/calls'
import { describe, expect, test } from 'vitest'
import { library } from './support/stubCalls.js'

describe('callbacks', () => {
  test('from a foreign thread arrive in order, and do nothing after dispose()', async () => {
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
    await expect.poll(() => seen, { timeout: 300_000 }).toEqual([0, 0, 0])
    callback.dispose()
    callback.dispose()
    callFromThread()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(seen).toHaveLength(3)
  })

  test('refuse other values than a function', () => {
    expect(() => createHostCallback(5 as never)).toThrow(/fn must be a function/)
  })

  test('of the stream shape receive the status', async () => {
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
