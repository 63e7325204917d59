import {
  nvshmem_barrier_all,
  nvshmem_fence,
  nvshmem_quiet,
  nvshmem_sync_all,
  nvshmemx_barrier_all_on_stream,
  nvshmemx_quiet_on_stream,
  nvshmemx_sync_all_on_stream,
} from '@shoal/nvshmem-sys'
import { requireOptions } from '../checks.js'
import { type StreamOperand, streamAt } from '../operands.js'
import type { WaitOptions } from './callQueue.js'
import type { LiveSession } from './live.js'

/** Calls that order or complete transfers, of all PEs or of this one. */
export const synchronizations = {
  barrierAll: nvshmem_barrier_all,
  syncAll: nvshmem_sync_all,
  quiet: nvshmem_quiet,
  fence: nvshmem_fence,
} as const

export const streamSynchronizations = {
  barrierAll: nvshmemx_barrier_all_on_stream,
  syncAll: nvshmemx_sync_all_on_stream,
  quiet: nvshmemx_quiet_on_stream,
} as const

export type Synchronization = keyof typeof synchronizations
export type StreamSynchronization = keyof typeof streamSynchronizations

export interface OnStreamOptions {
  /** Stream it is queued on: a stream object, a bare `cudaStream_t`, or null for the default stream. */
  readonly stream: StreamOperand
}

export async function synchronize(live: LiveSession, kind: Synchronization, wait: WaitOptions = {}): Promise<void> {
  await live.queue.run(`Session.${kind}`, synchronizations[kind], { wait })
}

export function synchronizeSync(live: LiveSession, kind: Synchronization): void {
  live.queue.runSync(`Session.${kind}Sync`, synchronizations[kind])
}

export function queueSynchronization(
  live: LiveSession,
  kind: StreamSynchronization,
  options: OnStreamOptions,
): Promise<void> {
  const api = `Session.${kind}OnStream`
  try {
    requireOptions(options, api, '{ stream }')
    const stream = streamAt(live, options.stream, api)
    return live.queue.start(api, () => streamSynchronizations[kind](stream))
  } catch (error) {
    return Promise.reject(error)
  }
}
