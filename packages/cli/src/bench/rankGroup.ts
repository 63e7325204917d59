import { Device } from '@shoal/driver'
import { bootstrap, type Job } from '@shoal/launch'
import { UsageError } from '../command.js'
import type { BenchOptions } from './options.js'

/** The ranks of a benchmark: all driven by this process, or one of a job with a process per rank. */
export interface RankGroup {
  readonly worldSize: number
  /** Ranks and devices that this process drives. */
  readonly ranks: readonly { readonly rank: number; readonly device: Device }[]
  readonly processes: number
  /** Whether a launcher started this process as a rank. */
  readonly isRank: boolean
  /** Whether this process prints and writes files. */
  readonly isFirst: boolean
  /** Fires when another process of the job died. */
  readonly lost: AbortSignal | undefined
  /** Returns the first process's bytes on all processes. */
  share(name: string, make: () => Uint8Array): Promise<Uint8Array>
  /** Returns the sum over all processes; also a barrier. */
  sum(value: number): Promise<number>
  /** Waits until all processes have called it. */
  barrier(): Promise<void>
  leave(): Promise<void>
}

/**
 * Joins the ranks: all devices of this process, or the device of its rank in a job.
 *
 * @throws UsageError if there are too few devices.
 */
export async function joinRankGroup(options: BenchOptions): Promise<RankGroup> {
  const job = await bootstrap()
  if (job.launcher !== 'single') return rankGroupOf(job, options)
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
    sum: async (value) => value,
    barrier: async () => undefined,
    leave: async () => undefined,
  }
}

async function rankGroupOf(job: Job, options: BenchOptions): Promise<RankGroup> {
  const waiting = { timeout: options.timeout, signal: job.lost }
  const all = Device.all()
  const device = all[job.deviceOrdinal]
  if (device === undefined) {
    await job.dispose()
    throw new UsageError(
      `rank ${job.rank} takes device ${job.deviceOrdinal}: this machine has ${all.length}, and no two ranks share one`,
    )
  }
  let sums = 0
  const sum = async (value: number): Promise<number> => {
    sums += 1
    const values = await job.gather(`bench ${sums}`, Buffer.from(String(value)), waiting)
    return values.reduce((total, bytes) => total + Number(Buffer.from(bytes).toString()), 0)
  }
  return {
    worldSize: job.worldSize,
    ranks: [{ rank: job.rank, device }],
    processes: job.worldSize,
    isRank: true,
    isFirst: job.rank === 0,
    lost: job.lost,
    share: (name, make) => job.share(name, make, waiting),
    sum,
    barrier: async () => void (await sum(0)),
    leave: () => job.dispose(),
  }
}
