// A parent and its child: `node dist/parent.js [--kill]`. The child inherits one end of a pair of sockets.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { DescriptorSocket, Device } from '@shoal/driver'
import { serve } from './exporter.js'
import { run } from './run.js'
import { SharedArray } from './sharedArray.js'

const childScript = fileURLToPath(new URL('child.js', import.meta.url))

await run('parent', async () => {
  const kill = process.argv.includes('--kill')
  const device = Device.get(0)
  console.log(`${device.name}${device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'}`)
  using shared = SharedArray.create(device)
  const [ours, theirs] = DescriptorSocket.pair()
  using socket = ours
  const child = spawn(process.execPath, [childScript, ...(kill ? ['--pause'] : [])], {
    stdio: ['ignore', 'inherit', 'inherit', theirs.descriptor],
  })
  const end = once(child, 'exit')
  // The child has its own copy now; while this one is open, its end would go unnoticed.
  theirs.dispose()
  const visit = await serve(socket, shared, {
    whenMapped: () => {
      if (kill) child.kill('SIGKILL')
    },
  })
  await end
  return visit === 'answered' || kill ? 0 : 1
})
