import { named } from '@shoal/cuda-base/basics'
import { AbortedError, type DeviceLike, describeValue, toDeviceOrdinal } from '@shoal/types'
import { requireOptions, requireSignal, requireTimeout, requireWhole, requireWord } from '../checks.js'
import type { WaitOptions } from '../queue/callQueue.js'
import { UniqueId } from './uniqueId.js'

/** Who launched the PEs and brings them together. */
export type Launcher = 'mpi' | 'pmi' | 'pmi2' | 'pmix' | 'shmem'

/** What NVSHMEM calls them: `NVSHMEM_BOOTSTRAP`, `NVSHMEM_BOOTSTRAP_PMI`. */
const launchers: { readonly [L in Launcher]: { readonly bootstrap: string; readonly pmi?: string } } = {
  mpi: { bootstrap: 'MPI' },
  pmi: { bootstrap: 'PMI', pmi: 'PMI' },
  pmi2: { bootstrap: 'PMI', pmi: 'PMI-2' },
  pmix: { bootstrap: 'PMI', pmi: 'PMIX' },
  shmem: { bootstrap: 'SHMEM' },
}

/** How much of NVSHMEM other threads of this process may use beside the session (`nvshmem_query_thread`). */
export type ThreadLevel = 'single' | 'funneled' | 'serialized' | 'multiple'

export const threadLevels: readonly ThreadLevel[] = ['single', 'funneled', 'serialized', 'multiple']

interface CommonOptions {
  /** Device this PE works on: an object of `@shoal/driver`, anything with the device protocol, or an ordinal. */
  readonly device: DeviceLike | number
  /** Milliseconds that the start may take. Default: no limit, as long as the others need to come. */
  readonly timeout?: number | undefined
  /**
   * Gives up: when it fires, the start, and later every call that is under way, rejects with AbortedError, and so does every
   * call of NVSHMEM from then on, also one that is only queued on a stream, which would wait there. What remains are
   * look-ups (`peer`, `multicastAddress`, `translate`, `config`), `abandon` and `globalExit`. Meant for the signal that
   * tells of a lost process.
   */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds that a call which waits for other PEs may take when it names no timeout. Default: no limit. */
  readonly defaultTimeout?: number | undefined
  /** What NVSHMEM is asked for. Default: what it gives, which is `'serialized'`. */
  readonly threadLevel?: ThreadLevel | undefined
}

/** A start by an id that one process made and all got. */
export interface UniqueIdInitOptions extends CommonOptions {
  /** None: the id brings the PEs together. */
  readonly launcher?: undefined
  /** This process's PE, from 0 to `worldSize` - 1. Each exactly once. */
  readonly rank: number
  /** Number of PEs. */
  readonly worldSize: number
  /** The same on all PEs: see `UniqueId.create`. */
  readonly id: UniqueId
}

/** A start by what launched the processes, such as `mpirun`. */
export interface LauncherInitOptions extends CommonOptions {
  /** What launched the processes. */
  readonly launcher: Launcher
  /** With `'mpi'`: address of an `MPI_Comm` whose processes are to be the PEs. Default: all processes. */
  readonly mpiCommunicator?: bigint | undefined
}

/** How a session starts: by an id, or by what launched the processes. */
export type InitOptions = UniqueIdInitOptions | LauncherInitOptions

export interface CheckedInit {
  readonly ordinal: number
  readonly wait: WaitOptions
  readonly defaults: WaitOptions
  readonly threadLevel: number | undefined
  readonly peers:
    | { readonly kind: 'id'; readonly rank: number; readonly worldSize: number; readonly id: UniqueId }
    | { readonly kind: 'launcher'; readonly bootstrap: string; readonly pmi: string | undefined }
    | { readonly kind: 'communicator'; readonly address: bigint }
}

export function checkInit(options: InitOptions, api: string): CheckedInit {
  requireOptions(options, api, '{ device, rank, worldSize, id } or { device, launcher }')
  const ordinal = named(api, 'device', () => toDeviceOrdinal(options.device))
  const { timeout, signal, defaultTimeout, threadLevel } = options
  requireTimeout(timeout, api)
  requireTimeout(defaultTimeout, api)
  requireSignal(signal, api)
  if (threadLevel !== undefined && !threadLevels.includes(threadLevel)) {
    throw new TypeError(
      `${api}: threadLevel must be one of ${threadLevels.join(', ')}; got ${describeValue(threadLevel)}`,
    )
  }
  const peers = options.launcher === undefined ? checkId(options, api) : checkLauncher(options, api)
  // Nothing has been started, so another start may follow.
  if (signal?.aborted === true) throw new AbortedError({ operation: api, cause: signal.reason })
  return {
    ordinal,
    wait: { timeout, signal },
    defaults: { timeout: defaultTimeout, signal },
    threadLevel: threadLevel === undefined ? undefined : threadLevels.indexOf(threadLevel),
    peers,
  }
}

function checkId({ rank, worldSize, id }: UniqueIdInitOptions, api: string): CheckedInit['peers'] {
  requireWhole(worldSize, 'worldSize', 1, 0x7fff_ffff, api)
  requireWhole(rank, 'rank', 0, worldSize - 1, api)
  if (!UniqueId._is(id))
    throw new TypeError(`${api}: id must be a UniqueId (see UniqueId.fromBytes), got ${describeValue(id)}`)
  return { kind: 'id', rank, worldSize, id }
}

function checkLauncher({ launcher, mpiCommunicator }: LauncherInitOptions, api: string): CheckedInit['peers'] {
  const { bootstrap, pmi } = requireWord(launchers, launcher, 'launcher', api)
  if (mpiCommunicator === undefined) return { kind: 'launcher', bootstrap, pmi }
  if (launcher !== 'mpi') throw new TypeError(`${api}: mpiCommunicator needs the launcher 'mpi'`)
  if (typeof mpiCommunicator !== 'bigint' || mpiCommunicator <= 0n) {
    throw new TypeError(
      `${api}: mpiCommunicator must be the address of an MPI_Comm, got ${describeValue(mpiCommunicator)}`,
    )
  }
  return { kind: 'communicator', address: mpiCommunicator }
}
