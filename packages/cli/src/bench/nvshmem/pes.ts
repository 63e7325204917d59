import { fileURLToPath } from 'node:url'
import { Device, type Stream } from '@shoal/driver'
import { Session, UniqueId } from '@shoal/nvshmem'
import { UsageError } from '../../command.js'
import { runCommand } from '../../run/command.js'
import type { BenchOptions } from '../options.js'
import { joinRankGroup, type RankGroup } from '../rankGroup.js'
import type { Column } from '../report/columns.js'
import type { Output } from '../report/output.js'

/** NVSHMEM's default symmetric heap, and the part that NVSHMEM uses itself, in bytes. */
const defaultHeap = 2 ** 30
const usedByNvshmem = 64 * 2 ** 20

/** This process as a PE of a benchmark. */
export interface Pe {
  readonly rankGroup: RankGroup
  readonly session: Session
  readonly stream: Stream
}

/** A benchmark of NVSHMEM. */
export interface NvshmemTest {
  readonly columns: readonly Column[]
  /** Measures as one of the PEs; returns the exit status. */
  run(pe: Pe, options: BenchOptions, output: Output): Promise<number>
}

/** Starts this command once per PE and returns its exit status. */
export async function startPes(commandLine: readonly string[], options: BenchOptions): Promise<number> {
  const devices = Device.all().length
  const pes = options.devices ?? devices
  if (pes > devices) throw new UsageError(`--devices ${pes}: this machine has ${devices}`)
  if (pes < 2) throw new UsageError('NVSHMEM between PEs needs two devices')
  const program = fileURLToPath(new URL('../bin/shoal.js', import.meta.resolve('@shoal/cli')))
  // All PEs are on this machine, whatever interfaces it has.
  process.env['NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME'] ??= 'lo'
  // Like `shoal run … shoal bench …`: the environment makes the processes ranks.
  return await runCommand.run(['-n', String(pes), '--no-prefix', program, 'bench', ...commandLine])
}

/** Starts NVSHMEM on all PEs, runs `work`, and ends NVSHMEM. */
export async function runAsPe<T>(
  options: BenchOptions,
  rankGroup: RankGroup,
  work: (pe: Pe) => Promise<T>,
): Promise<T> {
  const [{ rank, device }] = rankGroup.ranks as [RankGroup['ranks'][number]]
  const id = UniqueId.fromBytes(await rankGroup.share('nvshmem', () => UniqueId.create().toBytes()))
  const needed = 2 * options.sweep.most + usedByNvshmem
  // NVSHMEM reads the variable when it starts.
  if (needed > defaultHeap) process.env['NVSHMEM_SYMMETRIC_SIZE'] ??= String(needed)
  const stream = device.createStream({ nonBlocking: true })
  const session = await Session.init({
    device,
    rank,
    worldSize: rankGroup.worldSize,
    id,
    timeout: options.timeout,
    defaultTimeout: options.timeout,
    ...(rankGroup.lost ? { signal: rankGroup.lost } : {}),
  })
  try {
    const result = await work({ rankGroup, session, stream })
    await session.finalize()
    return result
  } catch (error) {
    // The other PEs may be gone, so do not wait for them.
    session.abandon()
    throw error
  } finally {
    stream.dispose()
  }
}

/** Joins a job as one of its PEs. Undefined without a job; `startPes` must then start one. */
export async function joinAsPe(options: BenchOptions): Promise<RankGroup | undefined> {
  const rankGroup = await joinRankGroup(options)
  if (rankGroup.isRank) return rankGroup
  await rankGroup.leave()
  return undefined
}
