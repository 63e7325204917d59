// What parent.js starts: descriptor 3 is its end of the sockets.
import { DescriptorSocket } from '@shoal/driver'
import { runImporter } from './importer.js'
import { run } from './run.js'

await run('child', async () => {
  using socket = DescriptorSocket.adopt(3)
  await runImporter(socket, { pause: process.argv.includes('--pause'), stay: false })
  return 0
})
