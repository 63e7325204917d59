import { randomBytes } from 'node:crypto'
import { type BootstrapOptions, bootstrap, type Job } from '@shoal/launch'
import { formatAddress, RendezvousServer, type ServerOptions } from '@shoal/launch/server'
import { afterEach } from 'vitest'

const cleanups: (() => void | Promise<void>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

export function afterThisTest(cleanup: () => void | Promise<void>): void {
  cleanups.push(cleanup)
}

export interface Meeting {
  readonly server: RendezvousServer
  readonly secret: string
  /** What was said about connections that were turned away. */
  readonly strangers: string[]
  environment(rank: number): Record<string, string>
  join(rank: number, options?: BootstrapOptions): Promise<Job>
}

/** A rendezvous as a launcher would serve it. */
export async function serve(worldSize: number, options: Partial<ServerOptions> = {}): Promise<Meeting> {
  const secret = randomBytes(16).toString('hex')
  const strangers: string[] = []
  const onStranger = (reason: string): void => void strangers.push(reason)
  const server = await RendezvousServer.listen({ worldSize, secret: Buffer.from(secret), onStranger, ...options })
  cleanups.push(() => server.close())
  const address = formatAddress(server.address)
  const environment = (rank: number): Record<string, string> => ({
    SHOAL_RENDEZVOUS: address,
    SHOAL_SECRET: secret,
    RANK: String(rank),
    WORLD_SIZE: String(worldSize),
  })
  return {
    server,
    secret,
    strangers,
    environment,
    async join(rank, more = {}) {
      const job = await bootstrap({ environment: environment(rank), timeout: 10_000, ...more })
      cleanups.push(() => job.dispose())
      return job
    },
  }
}

/** All ranks of a job, in this process. */
export async function startJob(worldSize: number): Promise<{ readonly meeting: Meeting; readonly jobs: Job[] }> {
  const meeting = await serve(worldSize)
  const jobs = await Promise.all(Array.from({ length: worldSize }, (_, rank) => meeting.join(rank)))
  return { meeting, jobs }
}

/** What each promise was rejected with. */
export async function failuresOf(promises: readonly Promise<unknown>[]): Promise<unknown[]> {
  return Promise.all(
    promises.map((promise) =>
      promise.then(
        () => 'it succeeded',
        (error: unknown) => error,
      ),
    ),
  )
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
