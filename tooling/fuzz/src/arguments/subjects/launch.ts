import { randomUUID } from 'node:crypto'
import { general, type Subject } from './subject.js'

export async function launchSubject(): Promise<Subject> {
  const launch = await import('@shoal/launch')
  const { formatAddress, RendezvousServer } = await import('@shoal/launch/server')
  const secret = randomUUID()
  /** Connects one of two ranks. The other rank never answers. */
  const connected = async (): Promise<import('@shoal/launch').Job> => {
    const server = await RendezvousServer.listen({ worldSize: 2, secret: Buffer.from(secret) })
    const address = formatAddress(server.address)
    const [job] = await Promise.all(
      ['0', '1'].map((RANK) =>
        launch.bootstrap({ environment: { SHOAL_RENDEZVOUS: address, SHOAL_SECRET: secret, RANK, WORLD_SIZE: '2' } }),
      ),
    )
    return job as import('@shoal/launch').Job
  }
  return {
    module: launch,
    instances: { Job: () => launch.bootstrap({ environment: {} }), ConnectedJob: connected },
    values: {
      ...general,
      '#name': () => 'a name',
      '#key': () => 'a key',
      '#bytes': () => new Uint8Array(4),
      '#make': () => () => new Uint8Array(4),
    },
    foreignObjects: {},
    // The process ends without waiting for ranks that were dropped.
    end: () => setTimeout(() => process.exit(0), 100),
  }
}
