import { type OptionKeys, type WaitOptions, waitKeys } from '@shoal/types'
import type { StreamOperand } from '../operands.js'

/** Which PE, and how many elements. */
export interface TransferOptions {
  /** The other PE, from 0 to `peCount` - 1; this process's own is allowed. */
  readonly pe: number
  /** Number of elements. Default: all of both sides, which then have to match. */
  readonly count?: number | undefined
}

export const transferKeys: OptionKeys<TransferOptions> = { pe: true, count: true }

/** Which PE, how many elements, and how long to wait. */
export type WaitingTransferOptions = TransferOptions & WaitOptions

export const waitingTransferKeys: OptionKeys<WaitingTransferOptions> = { ...transferKeys, ...waitKeys }

/** Which PE, how many elements, and on which stream. */
export interface StreamTransferOptions extends TransferOptions {
  /**
   * Stream the transfer is queued on: a stream object, a bare `cudaStream_t`, or null for the default stream. Default:
   * that of `Stream.use`, else the default stream.
   */
  readonly stream?: StreamOperand | undefined
}

export const streamTransferKeys: OptionKeys<StreamTransferOptions> = { ...transferKeys, stream: true }
