// Shares memory with whoever connects: `node dist/owner.js PATH [--guests N]`. SIGINT and SIGTERM end it.
import { parseArgs } from 'node:util'
import { AbortedError, DescriptorServer, type DescriptorSocket, Device } from '@shoal/driver'
import { serve } from './host.js'
import { run, UsageError } from './run.js'
import { SharedArray } from './sharedArray.js'

await run('owner', async () => {
  const { path, guests } = readOptions()
  using shared = SharedArray.create(Device.get(0))
  using server = DescriptorServer.listen(path)
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  console.log(`host ${process.pid}: listening at ${path}`)
  const sockets: DescriptorSocket[] = []
  try {
    while (sockets.length < guests) {
      const socket = await server.accept({ signal: stop.signal })
      // It stays open until the owner ends: that is how a guest learns of it.
      sockets.push(socket)
      await serve(socket, shared, { signal: stop.signal })
    }
  } catch (error) {
    if (!(error instanceof AbortedError)) throw error
    console.log(`host ${process.pid}: asked to stop`)
  } finally {
    for (const socket of sockets) socket.dispose()
  }
  return 0
})

function readOptions(): { path: string; guests: number } {
  const { values, positionals } = parseArgs({
    options: { guests: { type: 'string', default: 'Infinity' } },
    allowPositionals: true,
  })
  const [path, ...others] = positionals
  const guests = Number(values.guests)
  if (path === undefined || others.length > 0 || !(guests >= 1)) {
    throw new UsageError('usage: node dist/owner.js PATH [--guests N]')
  }
  return { path, guests }
}
