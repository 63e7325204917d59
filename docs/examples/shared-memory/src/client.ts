// Uses memory of an owner that it did not start: `node dist/client.js PATH [--stay] [--pause]`.
import { parseArgs } from 'node:util'
import { DescriptorSocket } from '@shoal/driver'
import { runImporter } from './importer.js'
import { run, UsageError } from './run.js'

await run('client', async () => {
  const { values, positionals } = parseArgs({
    options: { stay: { type: 'boolean', default: false }, pause: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [path, ...others] = positionals
  if (path === undefined || others.length > 0) {
    throw new UsageError('usage: node dist/client.js PATH [--stay] [--pause]')
  }
  using socket = DescriptorSocket.connect(path)
  await runImporter(socket, values)
  return 0
})
