import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { AbortedError, TimeoutError, type WaitOptions } from '@shoal/types'
import type { CheckedInit } from './initOptions.js'
import { UniqueId } from './uniqueId.js'

/** Milliseconds between two checks of a file that another process will write. */
const interval = 20

/**
 * Returns how the PEs find each other, if the caller does not specify it.
 *
 * The ranks of `shoal run` share an id through the file in `SHOAL_NVSHMEM_ID`. NVSHMEM has no bootstrap for them, so
 * each would otherwise be a job of one. `NVSHMEM_BOOTSTRAP` takes precedence.
 *
 * @throws TypeError if the environment describes several ranks that NVSHMEM cannot find.
 * @throws TimeoutError, AbortedError
 */
export async function peersOf(checked: CheckedInit, api: string): Promise<CheckedInit['peers']> {
  const { peers, wait } = checked
  const { env } = process
  if (peers.kind !== 'environment' || env['NVSHMEM_BOOTSTRAP']) return peers
  const [rank, worldSize] = [numberIn('RANK'), numberIn('WORLD_SIZE')]
  if (rank === undefined || worldSize === undefined || worldSize <= 1) return peers
  const file = env['SHOAL_NVSHMEM_ID']
  if (file) return { kind: 'id', rank, worldSize, id: await sharedId(file, rank, wait, api) }
  if (['PMI_RANK', 'PMIX_RANK', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID'].some((name) => env[name])) return peers
  throw new TypeError(
    `${api}: rank, worldSize and id must be given: RANK and WORLD_SIZE say that this is rank ${rank} of ${worldSize}, and ` +
      'NVSHMEM, which does not know these variables, would start a job of one PE. The guide "NVSHMEM" shows how ranks share an id',
  )
}

function numberIn(name: string): number | undefined {
  const text = process.env[name] ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

/** Rank 0 makes the id, and the other ranks wait for it. */
async function sharedId(file: string, rank: number, { timeout, signal }: WaitOptions, api: string): Promise<UniqueId> {
  if (rank === 0) return publish(file, api)
  const start = performance.now()
  for (;;) {
    const bytes = read(file)
    if (bytes !== undefined) return UniqueId.fromBytes(bytes)
    if (signal?.aborted === true) throw new AbortedError({ operation: api, ofDevice: false, cause: signal.reason })
    if (timeout !== undefined && performance.now() - start >= timeout)
      throw new TimeoutError({ operation: api, ofDevice: false, timeout })
    await new Promise((resolve) => setTimeout(resolve, interval))
  }
}

/** The id that this process has published: a start that failed before NVSHMEM may be repeated. */
let published: UniqueId | undefined

/** Publishes the id. The file appears complete, and only once. */
function publish(file: string, api: string): UniqueId {
  if (published !== undefined) return published
  const id = UniqueId.create()
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, id.toBytes(), { mode: 0o600, flag: 'wx' })
  try {
    linkSync(draft, file)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    throw new TypeError(
      `${api}: rank, worldSize and id must be given: another process of this rank has started the session of this shoal run`,
      { cause },
    )
  } finally {
    rmSync(draft, { force: true })
  }
  published = id
  return id
}

function read(file: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(readFileSync(file))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
