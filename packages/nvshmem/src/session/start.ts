import { ensureContextFunctions } from '@shoal/cuda-sys/driver'
import type { PrimaryContext } from '@shoal/driver/basics'
import { isSoftwareDevice, NativeMemory } from '@shoal/ffi'
import {
  NVSHMEM_VENDOR_MAJOR_VERSION,
  NVSHMEM_VENDOR_MINOR_VERSION,
  NVSHMEM_VENDOR_PATCH_VERSION,
  NVSHMEMX_INIT_ATTR_INITIALIZER,
  NVSHMEMX_UNIQUEID_INITIALIZER,
  nvshmem,
  nvshmem_my_pe,
  nvshmem_n_pes,
  nvshmem_query_thread,
  nvshmem_team_id_t,
  nvshmem_team_my_pe,
  nvshmem_team_n_pes,
  type nvshmem_team_t,
  nvshmemi_version_t,
  nvshmemid_hostlib_init_attr,
  nvshmemx_hostlib_init_attr,
  nvshmemx_init_attr_t,
  nvshmemx_init_flags,
  nvshmemx_set_attr_mpi_comm_args,
  nvshmemx_set_attr_uniqueid_args,
  nvshmemx_status,
  nvshmemx_uniqueid_t,
} from '@shoal/nvshmem-sys'
import { AtomicKernels } from '../atomics/atomicKernels.js'
import type { AtomicSupport } from '../atomics/atomics.js'
import { checkNvshmem, nvshmemError } from '../errors.js'
import { CallQueue } from '../queue/callQueue.js'
import { environmentOfNvshmem } from '../workarounds/environment.js'
import type { CheckedInit } from './initOptions.js'
import { isRunning } from './status.js'

/** NVSHMEM's predefined teams, in the order of their numbers. */
export const predefinedTeams: readonly { readonly name: string; readonly handle: nvshmem_team_t }[] = [
  { name: 'world', handle: nvshmem_team_id_t.NVSHMEM_TEAM_WORLD },
  { name: 'shared', handle: nvshmem_team_id_t.NVSHMEM_TEAM_SHARED },
  { name: 'node', handle: nvshmem_team_id_t.NVSHMEMX_TEAM_NODE },
  { name: 'samePeIndex', handle: nvshmem_team_id_t.NVSHMEMX_TEAM_SAME_MYPE_NODE },
]

/** A started session: its queue, and its position according to NVSHMEM. */
export interface Started {
  readonly queue: CallQueue
  readonly atomics: AtomicSupport
  readonly pe: number
  readonly peCount: number
  readonly threadLevel: number
  /** This PE's number in, and the size of, each predefined team. */
  readonly places: readonly { readonly pe: number; readonly peCount: number }[]
  /** Memory that NVSHMEM may read while it runs. */
  readonly memory: readonly NativeMemory[]
}

/** Loads the libraries before calls are recorded for another thread, so that a missing or old one throws here. */
export function loadLibraries(): void {
  ensureContextFunctions()
  nvshmem.load()
}

/** Starts NVSHMEM on a dedicated thread, which makes all later calls, and waits for the other PEs. */
export async function start(checked: CheckedInit, context: PrimaryContext, api: string): Promise<Started> {
  const queue = new CallQueue(context.handle, checked.defaults)
  const { flags, attributes, memory } = attributesOf(checked, api)
  environmentOfNvshmem()
  const provided = NativeMemory.allocate(4)
  const keep = [attributes, provided, ...memory]
  const [status] = await queue.run(api, () => initialize(checked, flags, attributes, provided), {
    wait: checked.wait,
    keep,
  })
  checkNvshmem(status, 'nvshmemx_hostlib_init_attr')
  if (!isRunning()) {
    // Most NVSHMEM functions would now end the process or crash.
    throw nvshmemError(
      nvshmemx_status.NVSHMEMX_ERROR_GPU_NOT_SELECTED,
      'nvshmemx_hostlib_init_attr',
      `NVSHMEM brought the PEs together, but could not use device ${context.ordinal}; what it printed may tell why`,
    )
  }
  const [pe, peCount, , ...places] = await queue.run(api, () => {
    nvshmem_my_pe()
    nvshmem_n_pes()
    nvshmem_query_thread(provided)
    for (const { handle } of predefinedTeams) {
      nvshmem_team_my_pe(handle)
      nvshmem_team_n_pes(handle)
    }
  })
  return {
    queue,
    atomics: await atomicSupport(queue),
    pe: Number(pe),
    peCount: Number(peCount),
    threadLevel: provided.i32[0] ?? 0,
    places: predefinedTeams.map((_, index) => ({
      pe: Number(places[2 * index]),
      peCount: Number(places[2 * index + 1]),
    })),
    memory: keep,
  }
}

/** Chooses how to make atomics: only the software device's NVSHMEM implements them for the host. */
async function atomicSupport(queue: CallQueue): Promise<AtomicSupport> {
  if (isSoftwareDevice()) return 'library'
  try {
    return await AtomicKernels.load(queue)
  } catch (error) {
    // Reported at the first atomic, because most programs use none.
    return { cause: error }
  }
}

function initialize(
  { threadLevel }: CheckedInit,
  flags: number,
  attributes: NativeMemory,
  provided: NativeMemory,
): number {
  if (threadLevel === undefined) return nvshmemx_hostlib_init_attr(flags, attributes)
  const version = nvshmemi_version_t.allocate({
    major: NVSHMEM_VENDOR_MAJOR_VERSION,
    minor: NVSHMEM_VENDOR_MINOR_VERSION,
    patch: NVSHMEM_VENDOR_PATCH_VERSION,
  })
  return nvshmemid_hostlib_init_attr(threadLevel, provided, flags, attributes, version, null)
}

function attributesOf(
  { peers, rawAttributes }: CheckedInit,
  api: string,
): { readonly flags: number; readonly attributes: NativeMemory; readonly memory: readonly NativeMemory[] } {
  const { size } = nvshmemx_init_attr_t
  const attributes = NativeMemory.allocate(Math.max(size, rawAttributes?.length ?? 0))
  if (rawAttributes === undefined) nvshmemx_init_attr_t.write(attributes, NVSHMEMX_INIT_ATTR_INITIALIZER)
  else attributes.bytes.set(rawAttributes)
  if (peers.kind === 'id') {
    const id = NativeMemory.allocate(nvshmemx_uniqueid_t.size)
    nvshmemx_uniqueid_t.write(id, NVSHMEMX_UNIQUEID_INITIALIZER)
    id.bytes.set(peers.id.toBytes())
    const status = nvshmemx_set_attr_uniqueid_args(peers.rank, peers.worldSize, id, attributes)
    checkNvshmem(status, 'nvshmemx_set_attr_uniqueid_args')
    return { flags: nvshmemx_init_flags.NVSHMEMX_INIT_WITH_UNIQUEID, attributes, memory: [id] }
  }
  if (peers.kind === 'communicator') {
    const status = nvshmemx_set_attr_mpi_comm_args(peers.address, attributes)
    checkNvshmem(status, 'nvshmemx_set_attr_mpi_comm_args')
    return { flags: nvshmemx_init_flags.NVSHMEMX_INIT_WITH_MPI_COMM, attributes, memory: [] }
  }
  if (peers.kind === 'launcher') chooseBootstrap(peers.bootstrap, peers.pmi, api)
  return { flags: 0, attributes, memory: [] }
}

/** Sets the variables that NVSHMEM reads if no attribute selects a bootstrap. */
function chooseBootstrap(bootstrap: string, pmi: string | undefined, api: string): void {
  const wanted = { NVSHMEM_BOOTSTRAP: bootstrap, ...(pmi === undefined ? {} : { NVSHMEM_BOOTSTRAP_PMI: pmi }) }
  for (const [name, value] of Object.entries(wanted)) {
    if (process.env[name] === value) continue
    if (!process.getBuiltinModule('node:worker_threads').isMainThread) {
      // A worker's process.env is a copy that C code cannot see.
      throw new TypeError(
        `${api}: launcher needs ${name}=${value}, which in a worker has to be set before the process starts`,
      )
    }
    process.env[name] = value
  }
}
