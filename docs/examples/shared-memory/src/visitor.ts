// Uses memory of an owner that it did not start: `node dist/visitor.js PATH [--stay] [--pause]`.
import { parseArgs } from 'node:util'
import { DescriptorSocket } from '@shoal/driver'
import { beGuest } from './guest.js'
import { run, UsageError } from './run.js'

await run('visitor', async () => {
  const { values, positionals } = parseArgs({
    options: { stay: { type: 'boolean', default: false }, pause: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [path, ...others] = positionals
  if (path === undefined || others.length > 0) {
    throw new UsageError('usage: node dist/visitor.js PATH [--stay] [--pause]')
  }
  using socket = DescriptorSocket.connect(path)
  await beGuest(socket, values)
  return 0
})
