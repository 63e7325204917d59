import { nvshmemx_init_attr_t } from '@shoal/nvshmem-sys'
import {
  AbortedError,
  type DeviceLike,
  isInstance,
  type OptionKeys,
  optionalSignal,
  optionalTimeout,
  outOfRange,
  requireAddress,
  requireInstance,
  requireInteger,
  requireKeyOf,
  requireOneOf,
  requireOptions,
  toDeviceOrdinal,
  type WaitOptions,
  wrongType,
} from '@shoal/types'
import { UniqueId } from './uniqueId.js'

/** The launcher of the PEs' processes, through which they find each other. */
export type Launcher = 'mpi' | 'pmi' | 'pmi2' | 'pmix' | 'shmem'

/** NVSHMEM's names of the launchers: `NVSHMEM_BOOTSTRAP`, `NVSHMEM_BOOTSTRAP_PMI`. */
const launchers: { readonly [L in Launcher]: { readonly bootstrap: string; readonly pmi?: string } } = {
  mpi: { bootstrap: 'MPI' },
  pmi: { bootstrap: 'PMI', pmi: 'PMI' },
  pmi2: { bootstrap: 'PMI', pmi: 'PMI-2' },
  pmix: { bootstrap: 'PMI', pmi: 'PMIX' },
  shmem: { bootstrap: 'SHMEM' },
}

/** Which threads of the process may call NVSHMEM (`nvshmem_query_thread`). */
export type ThreadLevel = 'single' | 'funneled' | 'serialized' | 'multiple'

export const threadLevels: readonly ThreadLevel[] = ['single', 'funneled', 'serialized', 'multiple']

interface CommonOptions {
  /** Device of this PE: an object of `@shoal/driver`, anything with the device protocol, or an ordinal. */
  readonly device: DeviceLike | number
  /** Limit of the start in milliseconds. Default: no limit. */
  readonly timeout?: number | undefined
  /**
   * When the signal fires, the start and every call in progress reject with AbortedError.
   *
   * All later calls of NVSHMEM reject too, even calls that only queue work on a stream, because this work would wait
   * for ever. Look-ups (`peer`, `multicastAddress`, `translate`, `config`), `abandon` and `globalExit` still work. Pass
   * the signal that reports a lost process.
   */
  readonly signal?: AbortSignal | undefined
  /** Default limit in milliseconds of calls that wait for other PEs. Default: no limit. */
  readonly defaultTimeout?: number | undefined
  /** Thread level to request. Default: NVSHMEM's default, `'serialized'`. */
  readonly threadLevel?: ThreadLevel | undefined
  /**
   * Bytes of an `nvshmemx_init_attr_t` to start from, for fields that this package does not know.
   *
   * These bytes replace `NVSHMEMX_INIT_ATTR_INITIALIZER`; the other options overwrite their fields.
   */
  readonly rawAttributes?: Uint8Array | undefined
}

/** Options of a start with an id, which one process makes and all processes receive. */
export interface UniqueIdInitOptions extends CommonOptions {
  /** Not allowed, because the id replaces the launcher. */
  readonly launcher?: undefined
  /** This process's PE, from 0 to `worldSize` - 1; different in each process. */
  readonly rank: number
  /** Number of PEs. */
  readonly worldSize: number
  /** The same id on all PEs: see `UniqueId.create`. */
  readonly id: UniqueId
}

/** Options of a start without an id. */
interface OptionsWithoutId extends CommonOptions {
  readonly rank?: undefined
  readonly worldSize?: undefined
  readonly id?: undefined
}

/** Options of a start by a launcher, such as `mpirun`. */
export interface LauncherInitOptions extends OptionsWithoutId {
  /** Launcher of the processes. */
  readonly launcher: Launcher
  /** With `'mpi'`: address of an `MPI_Comm` whose processes become the PEs. Default: all processes. */
  readonly mpiCommunicator?: bigint | undefined
}

/**
 * Options of a start by environment variables.
 *
 * NVSHMEM reads `NVSHMEM_BOOTSTRAP` (default: `PMI`), `NVSHMEM_BOOTSTRAP_PMI`, and related variables.
 */
export interface EnvironmentInitOptions extends OptionsWithoutId {
  /** Not allowed, because the environment names the launcher. */
  readonly launcher?: undefined
  /** Not allowed, because this option requires the launcher `'mpi'`. */
  readonly mpiCommunicator?: undefined
}

/** Options of a session's start: by an id, by a launcher, or by environment variables. */
export type InitOptions = UniqueIdInitOptions | LauncherInitOptions | EnvironmentInitOptions

/** Far more than any version needs. */
const mostBytes = 4096

const initKeys: OptionKeys<UniqueIdInitOptions & Pick<LauncherInitOptions, 'mpiCommunicator'>> = {
  device: true,
  rank: true,
  worldSize: true,
  id: true,
  launcher: true,
  mpiCommunicator: true,
  timeout: true,
  signal: true,
  defaultTimeout: true,
  threadLevel: true,
  rawAttributes: true,
}

export interface CheckedInit {
  readonly ordinal: number
  readonly wait: WaitOptions
  readonly defaults: WaitOptions
  readonly threadLevel: number | undefined
  readonly rawAttributes: Uint8Array | undefined
  readonly peers:
    | { readonly kind: 'id'; readonly rank: number; readonly worldSize: number; readonly id: UniqueId }
    | { readonly kind: 'launcher'; readonly bootstrap: string; readonly pmi: string | undefined }
    | { readonly kind: 'communicator'; readonly address: bigint }
    | { readonly kind: 'environment' }
}

export function checkInit(options: InitOptions, api: string): CheckedInit {
  requireOptions<object>(options, api, initKeys)
  const ordinal = toDeviceOrdinal(options.device, api, 'device')
  const { threadLevel } = options
  const timeout = optionalTimeout(options.timeout, api)
  const defaultTimeout = optionalTimeout(options.defaultTimeout, api, 'defaultTimeout')
  const signal = optionalSignal(options.signal, api)
  if (threadLevel !== undefined) requireOneOf(threadLevel, api, 'threadLevel', threadLevels)
  const peers = checkPeers(options, api)
  const { rawAttributes } = options
  if (rawAttributes !== undefined) requireRawAttributes(rawAttributes, api)
  // Nothing was started, so another start is possible.
  if (signal?.aborted === true) throw new AbortedError({ operation: api, cause: signal.reason })
  return {
    ordinal,
    wait: { timeout, signal },
    defaults: { timeout: defaultTimeout, signal },
    threadLevel: threadLevel === undefined ? undefined : threadLevels.indexOf(threadLevel),
    rawAttributes,
    peers,
  }
}

function requireRawAttributes(bytes: Uint8Array, api: string): void {
  const name = 'rawAttributes'
  if (!isInstance(bytes, Uint8Array)) throw wrongType(api, name, 'a Uint8Array', bytes)
  const { size } = nvshmemx_init_attr_t
  if (bytes.length >= size && bytes.length <= mostBytes) return
  throw outOfRange(api, name, `an nvshmemx_init_attr_t of ${size} to ${mostBytes} bytes`, bytes.length)
}

function checkPeers(options: InitOptions, api: string): CheckedInit['peers'] {
  const { launcher, rank, worldSize, id } = options as Partial<UniqueIdInitOptions & LauncherInitOptions>
  if (launcher !== undefined) return checkLauncher(options as LauncherInitOptions, api)
  requireNoCommunicator(options, api)
  if (rank === undefined && worldSize === undefined && id === undefined) return { kind: 'environment' }
  const size = requireInteger(worldSize, api, 'worldSize', 1, 0x7fff_ffff)
  return {
    kind: 'id',
    rank: requireInteger(rank, api, 'rank', 0, size - 1),
    worldSize: size,
    id: requireInstance(id, api, 'id', UniqueId),
  }
}

function requireNoCommunicator(options: InitOptions, api: string): void {
  if ('mpiCommunicator' in options && options.mpiCommunicator !== undefined)
    throw new TypeError(`${api}: mpiCommunicator needs the launcher 'mpi'`)
}

function checkLauncher(options: LauncherInitOptions, api: string): CheckedInit['peers'] {
  const { launcher, mpiCommunicator } = options
  const { bootstrap, pmi } = requireKeyOf(launcher, api, 'launcher', launchers)
  if (launcher !== 'mpi') requireNoCommunicator(options, api)
  if (mpiCommunicator === undefined) return { kind: 'launcher', bootstrap, pmi }
  const address = requireAddress(mpiCommunicator, api, 'mpiCommunicator')
  if (address === 0n) throw outOfRange(api, 'mpiCommunicator', 'the address of an MPI_Comm', mpiCommunicator)
  return { kind: 'communicator', address }
}
