import { isCapturing } from '@shoal/driver/basics'
import {
  type cudaStream_t,
  nvshmem_barrier,
  nvshmem_fence,
  nvshmem_quiet,
  nvshmem_team_sync,
  type nvshmem_team_t,
  nvshmemx_barrier_on_stream,
  nvshmemx_quiet_on_stream,
  nvshmemx_team_sync_on_stream,
} from '@shoal/nvshmem-sys'
import { doneNow, type OptionKeys, requireOptions, type WaitOptions } from '@shoal/types'
import { checkNvshmem } from '../errors.js'
import { type StreamOperand, streamAt } from '../operands.js'
import type { LiveSession } from '../queue/liveSession.js'
import { startOnStream } from '../queue/onStream.js'

interface Calls {
  /** Name of the C function, and its call. A call without a status returns undefined. */
  readonly api: string
  readonly call: (team: nvshmem_team_t) => unknown
  readonly onStream?: (team: nvshmem_team_t, stream: cudaStream_t) => unknown
  /** Checks the result of `onStream`. */
  readonly check?: (status: unknown) => void
  /** Whether it completes the transfers that this PE has started. */
  readonly completes: boolean
}

// For the world team, these equal nvshmem_barrier_all and nvshmem_sync_all, and return a status.
const calls = {
  barrier: {
    api: 'nvshmem_barrier',
    call: nvshmem_barrier,
    onStream: nvshmemx_barrier_on_stream,
    check: (status) => checkNvshmem(status, 'nvshmemx_barrier_on_stream'),
    completes: true,
  },
  sync: {
    api: 'nvshmem_team_sync',
    call: nvshmem_team_sync,
    onStream: nvshmemx_team_sync_on_stream,
    check: (status) => checkNvshmem(status, 'nvshmemx_team_sync_on_stream'),
    completes: false,
  },
  quiet: {
    api: 'nvshmem_quiet',
    call: () => nvshmem_quiet(),
    onStream: (_, stream) => nvshmemx_quiet_on_stream(stream),
    check: () => undefined,
    completes: true,
  },
  fence: { api: 'nvshmem_fence', call: () => nvshmem_fence(), completes: false },
} as const satisfies Record<string, Calls>

/** Calls that order or complete transfers. `quiet` and `fence` concern this PE only, whatever the team. */
export type Synchronization = keyof typeof calls
export type StreamSynchronization = Exclude<Synchronization, 'fence'>

/** Option that selects the stream. */
export interface OnStreamOptions {
  /**
   * Stream to queue on: a stream object, a bare `cudaStream_t`, or null for the default stream. Default: the stream of
   * `Stream.use`, else the default stream.
   */
  readonly stream?: StreamOperand | undefined
}

const streamKeys: OptionKeys<OnStreamOptions> = { stream: true }

export async function synchronize(
  live: LiveSession,
  kind: Synchronization,
  team: nvshmem_team_t,
  operation: string,
  wait: WaitOptions | undefined,
): Promise<void> {
  const { api, call, completes } = calls[kind]
  // Transfers started later are not covered.
  const completed = completes ? [...live.untilQuiet] : []
  const [status = 0] = await live.queue.run(operation, () => call(team), { wait })
  checkNvshmem(status, api)
  for (const operand of completed) live.untilQuiet.delete(operand)
}

export function synchronizeSync(
  live: LiveSession,
  kind: Synchronization,
  team: nvshmem_team_t,
  operation: string,
): void {
  const { api, call, completes }: Calls = calls[kind]
  checkNvshmem(live.queue.callSync(operation, () => call(team)) ?? 0, api)
  if (completes) live.untilQuiet.clear()
}

/**
 * Queues a synchronization; `owner` is the team.
 *
 * Throws for wrong arguments; callers turn that into a rejection.
 */
export function queueSynchronization(
  live: LiveSession,
  kind: StreamSynchronization,
  team: nvshmem_team_t,
  operation: string,
  options: OnStreamOptions,
  owner?: object,
): Promise<void> {
  requireOptions(options, operation, streamKeys)
  const stream = streamAt(live, options.stream, operation)
  const { queue } = live
  if (isCapturing() || !queue.idle) return queueApart(live, kind, team, operation, stream, options.stream, owner)
  const { onStream, check } = calls[kind]
  queue.enter()
  check(onStream(team, stream))
  return doneNow()
}

/** A separate function: one that makes a closure allocates for it in every call, even on paths without it. */
function queueApart(
  live: LiveSession,
  kind: StreamSynchronization,
  team: nvshmem_team_t,
  api: string,
  stream: cudaStream_t,
  given: StreamOperand | undefined,
  owner: object | undefined,
): Promise<void> {
  const { onStream, check } = calls[kind]
  const call = (): unknown => onStream(team, stream)
  return startOnStream(live, { api, stream, given, call, uses: [owner], check })
}
