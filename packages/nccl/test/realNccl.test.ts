import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const library = process.env['SHOAL_NCCL_LIBRARY']

// The real library needs no GPU for versions and ids, and reports an error for everything else. The driver is the
// software device's, in which the real NCCL finds no GPU.
const script = `
  import { Communicator, ncclVersion, UniqueId } from '@shoal/nccl'
  const ids = [UniqueId.create(), UniqueId.create()]
  const error = await Communicator.initAll([0]).then(() => null, (reason) => reason)
  console.log(JSON.stringify({ version: ncclVersion().value, ids, error }))
`

test('the real libnccl returns its version, unique ids, and an error with its message', (context) => {
  if (library === undefined || library === '') {
    context.skip('no libnccl on this machine: set SHOAL_NCCL_LIBRARY')
    return
  }
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, SHOAL_DEVICE: 'sim', NCCL_DEBUG: 'NONE' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const { version, ids, error } = JSON.parse(output) as {
    version: number
    ids: [string, string]
    error: { code: string; api: string; lastError: string; libraryVersion: string; isSticky: boolean }
  }
  expect(version).toBeGreaterThanOrEqual(20000)
  expect(ids[0]).not.toBe(ids[1])
  expect(error).toMatchObject({ code: 'ncclUnhandledCudaError', api: 'ncclCommInitAll', isSticky: true })
  expect(error.lastError).not.toBe('')
  expect(error.libraryVersion).toMatch(/^2\.\d+\.\d+$/)
})
