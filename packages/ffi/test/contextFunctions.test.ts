import { offThread } from '@shoal/ffi'
import { expect, test } from 'vitest'

// A separate file, and therefore process, because the functions cannot be unset.
test('a context without functions to switch contexts is refused, and the error names the function to call', async () => {
  await expect(offThread({ context: 1n }, () => undefined)).rejects.toMatchObject({
    api: 'cuCtxSetCurrent',
    message: expect.stringContaining('call ensureContextFunctions() of @shoal/cuda-sys first'),
  })
})
