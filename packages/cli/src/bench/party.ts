import { Device } from '@shoal/driver'
import { bootstrap, type Job } from '@shoal/launch'
import { UsageError } from '../command.js'
import type { BenchOptions } from './options.js'

/** The ranks of a benchmark: all in this process, or this process's one of a job. */
export interface Party {
  readonly worldSize: number
  /** What this process drives: its devices, by rank. */
  readonly ranks: readonly { readonly rank: number; readonly device: Device }[]
  readonly processes: number
  /** Whether something has started this process as a rank. */
  readonly isRank: boolean
  /** Prints, and writes files. */
  readonly isFirst: boolean
  /** Fires when another process of the job has died. */
  readonly lost: AbortSignal | undefined
  /** The same bytes for all processes. */
  share(name: string, make: () => Uint8Array): Promise<Uint8Array>
  /** All processes' values, one behind the other; also a barrier. */
  collect<T>(values: readonly T[]): Promise<T[]>
  leave(): Promise<void>
}

/**
 * All devices in this process where nothing has started it as a rank, else the device of this rank.
 * @throws UsageError when there are not as many devices.
 */
export async function joinParty(options: BenchOptions): Promise<Party> {
  const job = await bootstrap()
  if (job.launcher !== 'single') return partyOf(job, options)
  await job.dispose()
  const all = Device.all()
  if (all.length === 0) throw new UsageError('there is no device')
  const worldSize = options.devices ?? all.length
  if (worldSize > all.length) throw new UsageError(`--devices ${worldSize}: this machine has ${all.length}`)
  return {
    worldSize,
    ranks: all.slice(0, worldSize).map((device, rank) => ({ rank, device })),
    processes: 1,
    isRank: false,
    isFirst: true,
    lost: undefined,
    share: async (_, make) => make(),
    collect: async (values) => [...values],
    leave: async () => undefined,
  }
}

async function partyOf(job: Job, options: BenchOptions): Promise<Party> {
  const waiting = { timeout: options.timeout, signal: job.lost }
  const all = Device.all()
  const device = all[job.deviceOrdinal]
  if (device === undefined) {
    await job.dispose()
    throw new UsageError(
      `rank ${job.rank} takes device ${job.deviceOrdinal}: this machine has ${all.length}, and no two ranks share one`,
    )
  }
  let collected = 0
  return {
    worldSize: job.worldSize,
    ranks: [{ rank: job.rank, device }],
    processes: job.worldSize,
    isRank: true,
    isFirst: job.rank === 0,
    lost: job.lost,
    share: (name, make) => job.share(name, make, waiting),
    async collect<T>(values: readonly T[]) {
      collected += 1
      const parts = await job.gather(`bench ${collected}`, Buffer.from(JSON.stringify(values)), waiting)
      return parts.flatMap((bytes) => JSON.parse(Buffer.from(bytes).toString()) as T[])
    },
    leave: () => job.dispose(),
  }
}
