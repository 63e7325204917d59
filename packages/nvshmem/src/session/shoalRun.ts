import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { AbortedError, TimeoutError, type WaitOptions } from '@shoal/types'
import type { CheckedInit } from './initOptions.js'
import { UniqueId } from './uniqueId.js'

/** Milliseconds between two looks at a file that another process is about to write. */
const interval = 20

/**
 * How the PEs find each other where the caller has not said it. The ranks of `shoal run` share an id through the file
 * that `SHOAL_NVSHMEM_ID` names: NVSHMEM knows no bootstrap of theirs, and each would be a job of one.
 * `NVSHMEM_BOOTSTRAP` goes first.
 *
 * @throws TypeError where the environment speaks of several ranks and NVSHMEM cannot know of them.
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

/** Rank 0 makes the id, and the others wait for it. */
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

/** What this process has published: a start that failed before NVSHMEM may be tried again. */
let published: UniqueId | undefined

/** The file appears with all of its bytes, and only once. */
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
