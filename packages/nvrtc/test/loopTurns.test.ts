import { join } from 'node:path'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { loopTurns } from '../../ffi/test/support/loopTurns.js'
import { fakeCompiler, noCCompiler } from './support/fakeCompiler.js'

test.for([true, false])('Program.compile in a loop lets the event loop turn (cache: %s)', async (cache, { skip }) => {
  const reason = noCCompiler()
  if (reason !== undefined) return skip(reason)
  process.env['SHOAL_NVRTC_LIBRARY'] = fakeCompiler()
  process.env['SHOAL_CACHE_FOLDER'] = join(scratchFolder(), 'cache')
  const { Program } = await import('@shoal/nvrtc')
  const program = new Program('a')
  await program.compile()
  expect(await loopTurns(() => program.compile({ cache }))).toBe(true)
})
