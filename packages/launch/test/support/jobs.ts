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

export interface TestRendezvous {
  readonly server: RendezvousServer
  readonly secret: string
  /** Reasons of rejected connections, in order. */
  readonly rejections: string[]
  environment(rank: number): Record<string, string>
  join(rank: number, options?: BootstrapOptions): Promise<Job>
}

/** Serves a rendezvous like a launcher. */
export async function serve(worldSize: number, options: Partial<ServerOptions> = {}): Promise<TestRendezvous> {
  const secret = randomBytes(16).toString('hex')
  const rejections: string[] = []
  const onRejected = (reason: string): void => void rejections.push(reason)
  const server = await RendezvousServer.listen({ worldSize, secret: Buffer.from(secret), onRejected, ...options })
  cleanups.push(() => server.dispose())
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
    rejections,
    environment,
    async join(rank, more = {}) {
      const job = await bootstrap({ environment: environment(rank), timeout: 300_000, ...more })
      cleanups.push(() => job.dispose())
      return job
    },
  }
}

/** Starts all ranks of a job in this process. */
export async function startJob(
  worldSize: number,
): Promise<{ readonly rendezvous: TestRendezvous; readonly jobs: Job[] }> {
  const rendezvous = await serve(worldSize)
  const jobs = await Promise.all(Array.from({ length: worldSize }, (_, rank) => rendezvous.join(rank)))
  return { rendezvous, jobs }
}

/** Returns the errors with which the promises reject. */
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
