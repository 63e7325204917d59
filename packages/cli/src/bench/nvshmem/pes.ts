import { fileURLToPath } from 'node:url'
import { Device, type Stream } from '@shoal/driver'
import { Session, UniqueId } from '@shoal/nvshmem'
import { UsageError } from '../../command.js'
import { runCommand } from '../../run/command.js'
import type { BenchOptions } from '../options.js'
import { joinParty, type Party } from '../party.js'

/** The heap that NVSHMEM makes where it is not told another size, and what it needs of that itself. */
const defaultHeap = 2 ** 30
const ownPart = 64 * 2 ** 20

/** This process as a PE of a benchmark. */
export interface Pe {
  readonly party: Party
  readonly session: Session
  readonly stream: Stream
}

/** Starts this command once for each PE, and gives its exit status. */
export async function startPes(commandLine: readonly string[], options: BenchOptions): Promise<number> {
  const devices = Device.all().length
  const pes = options.devices ?? devices
  if (pes > devices) throw new UsageError(`--devices ${pes}: this machine has ${devices}`)
  if (pes < 2) throw new UsageError('NVSHMEM between PEs needs two devices')
  const program = fileURLToPath(new URL('../bin/shoal.js', import.meta.resolve('@shoal/cli')))
  // All on this machine, whatever interfaces it has.
  process.env['NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME'] ??= 'lo'
  // As if somebody had written that; the ranks know by their environment that they are ranks.
  return await runCommand.run(['-n', String(pes), '--no-prefix', program, 'bench', ...commandLine])
}

/** Does the work as a PE among the others, and ends NVSHMEM after it. */
export async function asPe<T>(options: BenchOptions, party: Party, work: (pe: Pe) => Promise<T>): Promise<T> {
  const [{ rank, device }] = party.ranks as [Party['ranks'][number]]
  const id = UniqueId.fromBytes(await party.share('nvshmem', () => UniqueId.create().toBytes()))
  const needed = 2 * options.sweep.most + ownPart
  // NVSHMEM reads it when it starts.
  if (needed > defaultHeap) process.env['NVSHMEM_SYMMETRIC_SIZE'] ??= String(needed)
  const stream = device.createStream({ nonBlocking: true })
  const session = await Session.init({
    device,
    rank,
    worldSize: party.worldSize,
    id,
    timeout: options.timeout,
    defaultTimeout: options.timeout,
    ...(party.lost ? { signal: party.lost } : {}),
  })
  try {
    const result = await work({ party, session, stream })
    await session.finalize()
    return result
  } catch (error) {
    // The others may be gone: nothing more is waited for.
    session.abandon()
    throw error
  } finally {
    stream.dispose()
  }
}

/** The party of a benchmark of PEs; undefined where there is none yet, and `startPes` has to make one. */
export async function joinPes(options: BenchOptions): Promise<Party | undefined> {
  const party = await joinParty(options)
  if (party.isRank) return party
  await party.leave()
  return undefined
}
