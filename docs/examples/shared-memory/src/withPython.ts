// Node and Python: `node dist/withPython.js`. PYTHON names another interpreter than python3.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AbortedError, DescriptorServer, Device, probe } from '@shoal/driver'
import { serve } from './exporter.js'
import { run, UsageError } from './run.js'
import { SharedArray } from './sharedArray.js'

const script = fileURLToPath(new URL('../python/client.py', import.meta.url))

await run('withPython', async () => {
  const device = Device.get(0)
  console.log(`${device.name}${device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'}`)
  using shared = SharedArray.create(device)
  // mkdtemp makes a folder that no other user can open.
  const folder = mkdtempSync(join(tmpdir(), 'shoal-'))
  try {
    using server = DescriptorServer.listen(join(folder, 'socket'))
    // Python has to use the driver that is used here.
    const library = probe().find(({ id }) => id === 'cuda')?.path ?? ''
    const python = spawn(process.env['PYTHON'] || 'python3', [script, server.path], {
      env: { ...process.env, SHOAL_CUDA_LIBRARY: library },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const gone = new AbortController()
    python.once('exit', () => gone.abort())
    await once(python, 'spawn')
    const end = once(python, 'exit') as Promise<[number | null]>
    using socket = await accept(server, gone.signal)
    const visit = await serve(socket, shared)
    const [status] = await end
    return visit === 'answered' && status === 0 ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

async function accept(server: DescriptorServer, signal: AbortSignal) {
  try {
    return await server.accept({ signal })
  } catch (error) {
    if (error instanceof AbortedError) throw new UsageError('Python ended before it connected')
    throw error
  }
}
