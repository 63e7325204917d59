import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { Device, DeviceBuffer, ipcMemoryHandle } = await import('@shoal/driver')

const script = fileURLToPath(new URL('fixtures/otherUser.mjs', import.meta.url))
const run = promisify(execFile)

test('the software device shares memory only with processes of the same user', async (context) => {
  using buffer = DeviceBuffer.from(Device.get(0), Uint8Array.of(3, 4))
  const handle = JSON.stringify(ipcMemoryHandle(buffer))
  expect((await run(process.execPath, [script, handle])).stdout).toBe('3 4')
  if (process.getuid?.() !== 0) return context.skip('only the superuser can start a process of another user')
  expect((await run(process.execPath, [script, handle, '54321'])).stdout).toMatch(/^CUDA_ERROR_/)
})
