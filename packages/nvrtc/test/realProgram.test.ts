import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { nvrtc } from '@shoal/nvrtc-sys'
import { LibraryNotFoundError } from '@shoal/types'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { moduleRunner } from '../../ffi/test/support/stub.js'

function missing(): string | undefined {
  try {
    nvrtc.load()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnvrtc on this machine: set SHOAL_NVRTC_LIBRARY'
    throw error
  }
}

const reason = missing()
const runModule = moduleRunner(new URL('../', import.meta.url))

test('an NVRTC without its built-ins file names the missing file', ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const alone = join(scratchFolder(), 'libnvrtc.so.13')
  copyFileSync(nvrtc.load().path, alone)
  const lines = runModule(
    `import { Program } from '@shoal/nvrtc'
     const error = await new Program('__global__ void k() {}').compile({ cache: false }).catch((each) => each)
     console.log(JSON.stringify([error.name, error.code, error.message]))`,
    // The loader's path must not replace a missing file.
    { SHOAL_NVRTC_LIBRARY: alone, LD_LIBRARY_PATH: '' },
  )
  const [name, code, message] = JSON.parse(lines[0] as string) as [string, string, string]
  expect([name, code]).toEqual(['CompileError', 'NVRTC_ERROR_BUILTIN_OPERATION_FAILURE'])
  expect(message).toContain('libnvrtc-builtins')
})
