import { expect, test } from 'vitest'
import { fakeCompiler, noCCompiler } from './support/fakeCompiler.js'

test('the error for a wrong architecture lists the architectures of NVRTC', async ({ skip }) => {
  const reason = noCCompiler()
  if (reason !== undefined) return skip(reason)
  process.env['SHOAL_NVRTC_LIBRARY'] = fakeCompiler()
  const { Program } = await import('@shoal/nvrtc')
  const wrong = new Program('a').compile({ architecture: 'sm_42', cache: false })
  await expect(wrong).rejects.toThrow(
    /architecture must be one of sm_75, sm_80, sm_90, or compute_ with one of these numbers, not 'sm_42'/,
  )
  await expect(wrong).rejects.toMatchObject({ name: 'CompileError' })
})
