import { offThread } from '@shoal/ffi'
import { expect, test } from 'vitest'

// A file of its own, so a process of its own: once they are set, they stay.
test('a context without functions to switch contexts is refused, and the error names the function to call', async () => {
  await expect(offThread({ context: 1n }, () => undefined)).rejects.toMatchObject({
    api: 'cuCtxSetCurrent',
    message: expect.stringContaining('call ensureContextFunctions() of @shoal/cuda-sys first'),
  })
})
