import { type OptionKeys, type WaitOptions, waitKeys } from '@shoal/types'
import type { StreamOperand } from '../operands.js'

/** PE and number of elements of a transfer. */
export interface TransferOptions {
  /** The other PE, from 0 to `peCount` - 1; this process's own PE is allowed. */
  readonly pe: number
  /** Number of elements. Default: all elements of both sides, whose lengths must match. */
  readonly count?: number | undefined
}

export const transferKeys: OptionKeys<TransferOptions> = { pe: true, count: true }

/** Options of a transfer, with limits of the wait. */
export type WaitingTransferOptions = TransferOptions & WaitOptions

export const waitingTransferKeys: OptionKeys<WaitingTransferOptions> = { ...transferKeys, ...waitKeys }

/** Options of a transfer, with a stream. */
export interface StreamTransferOptions extends TransferOptions {
  /**
   * Stream to queue on: a stream object, a bare `cudaStream_t`, or null for the default stream. Default: the stream of
   * `Stream.use`, else the default stream.
   */
  readonly stream?: StreamOperand | undefined
}

export const streamTransferKeys: OptionKeys<StreamTransferOptions> = { ...transferKeys, stream: true }
