import {
  type cudaStream_t,
  nvshmem_barrier,
  nvshmem_fence,
  nvshmem_quiet,
  nvshmem_team_id_t,
  nvshmem_team_sync,
  nvshmemx_barrier_on_stream,
  nvshmemx_quiet_on_stream,
  nvshmemx_team_sync_on_stream,
} from '@shoal/nvshmem-sys'
import { requireOptions } from '../checks.js'
import { checkNvshmem } from '../errors.js'
import { type StreamOperand, streamAt } from '../operands.js'
import type { WaitOptions } from './callQueue.js'
import type { LiveSession } from './live.js'

const world = nvshmem_team_id_t.NVSHMEM_TEAM_WORLD

/** A call that orders or completes transfers, and the name of the C function. Without a status it returns undefined. */
type Call = readonly [api: string, call: () => unknown]

// Of the world, the functions for teams do what nvshmem_barrier_all and nvshmem_sync_all do, and return a status.
const synchronizations = {
  barrierAll: ['nvshmem_barrier', () => nvshmem_barrier(world)],
  syncAll: ['nvshmem_team_sync', () => nvshmem_team_sync(world)],
  quiet: ['nvshmem_quiet', nvshmem_quiet],
  fence: ['nvshmem_fence', nvshmem_fence],
} as const satisfies Record<string, Call>

type StreamCall = readonly [api: string, call: (stream: cudaStream_t) => unknown]

const streamSynchronizations = {
  barrierAll: ['nvshmemx_barrier_on_stream', (stream) => nvshmemx_barrier_on_stream(world, stream)],
  syncAll: ['nvshmemx_team_sync_on_stream', (stream) => nvshmemx_team_sync_on_stream(world, stream)],
  quiet: ['nvshmemx_quiet_on_stream', nvshmemx_quiet_on_stream],
} as const satisfies Record<string, StreamCall>

export type Synchronization = keyof typeof synchronizations
export type StreamSynchronization = keyof typeof streamSynchronizations

/** On which stream. */
export interface OnStreamOptions {
  /** Stream it is queued on: a stream object, a bare `cudaStream_t`, or null for the default stream. */
  readonly stream: StreamOperand
}

export async function synchronize(live: LiveSession, kind: Synchronization, wait: WaitOptions = {}): Promise<void> {
  const [api, call] = synchronizations[kind]
  checkNvshmem((await live.queue.runOne(`Session.${kind}`, call, { wait })) ?? 0, api)
}

export function synchronizeSync(live: LiveSession, kind: Synchronization): void {
  const [api, call]: Call = synchronizations[kind]
  checkNvshmem(live.queue.runSync(`Session.${kind}Sync`, call) ?? 0, api)
}

export function queueSynchronization(
  live: LiveSession,
  kind: StreamSynchronization,
  options: OnStreamOptions,
): Promise<void> {
  const name = `Session.${kind}OnStream`
  try {
    requireOptions(options, name, '{ stream }')
    const stream = streamAt(live, options.stream, name)
    const [api, call]: StreamCall = streamSynchronizations[kind]
    return live.queue.startChecked(
      name,
      () => call(stream),
      (status) => checkNvshmem(status ?? 0, api),
    )
  } catch (error) {
    return Promise.reject(error)
  }
}
