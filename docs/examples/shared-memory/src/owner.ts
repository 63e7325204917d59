// Shares memory with each process that connects: `node dist/owner.js PATH [--importers N]`. SIGINT and SIGTERM end it.
import { parseArgs } from 'node:util'
import { AbortedError, DescriptorServer, type DescriptorSocket, Device } from '@shoal/driver'
import { serve } from './exporter.js'
import { run, UsageError } from './run.js'
import { SharedArray } from './sharedArray.js'

await run('owner', async () => {
  const { path, importers } = readOptions()
  using shared = SharedArray.create(Device.get(0))
  using server = DescriptorServer.listen(path)
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  console.log(`exporter ${process.pid}: listening at ${path}`)
  const sockets: DescriptorSocket[] = []
  try {
    while (sockets.length < importers) {
      const socket = await server.accept({ signal: stop.signal })
      // The socket stays open until the owner ends. Its closing tells the importer.
      sockets.push(socket)
      await serve(socket, shared, { signal: stop.signal })
    }
  } catch (error) {
    if (!(error instanceof AbortedError)) throw error
    console.log(`exporter ${process.pid}: asked to stop`)
  } finally {
    for (const socket of sockets) socket.dispose()
  }
  return 0
})

function readOptions(): { path: string; importers: number } {
  const { values, positionals } = parseArgs({
    options: { importers: { type: 'string', default: 'Infinity' } },
    allowPositionals: true,
  })
  const [path, ...others] = positionals
  const importers = Number(values.importers)
  if (path === undefined || others.length > 0 || !(importers >= 1)) {
    throw new UsageError('usage: node dist/owner.js PATH [--importers N]')
  }
  return { path, importers }
}
