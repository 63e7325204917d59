import type { cudaStream_t, nvshmemx_float_put_on_stream } from '@shoal/nvshmem-sys'
import type { MemoryRange, StreamHandle } from '@shoal/types'

export type Direction = 'put' | 'get'
export type StreamCall = typeof nvshmemx_float_put_on_stream

/** A checked transfer on a stream, with its arguments. */
export interface QueuedTransfer {
  /** Protocol answers of both memory ranges and the stream. */
  readonly symmetric: MemoryRange
  readonly own: MemoryRange
  readonly queue: StreamHandle
  readonly requestedCount: number | undefined
  readonly call: StreamCall
  readonly to: bigint
  readonly from: bigint
  readonly count: number
  readonly pe: number
  readonly stream: cudaStream_t
}

/** The last transfer of a session of each kind. */
export type RecentTransfers = { [K in Direction | `${Direction}NonBlocking`]: QueuedTransfer | undefined }

export function noRecentTransfers(): RecentTransfers {
  return { put: undefined, get: undefined, putNonBlocking: undefined, getNonBlocking: undefined }
}
