import type { DType, MemoryRange, StreamHandle } from '@shoal/types'

// What a communicator notes of the collectives that were asked of it.

/** A collective operation, as far as all ranks of a communicator have to agree on it; -1 stands where it has none. */
export interface AgreedOperation {
  /** C function. */
  readonly api: string
  /** Elements of a reduction, bytes of what is only moved. */
  readonly amount: number
  /** `ncclDataType_t` of a reduction. */
  readonly type: number
  readonly op: number
  readonly root: number
}

/** A collective whose operands were found to be right, and what it was asked with. */
export interface CheckedCollective {
  readonly source: MemoryRange
  readonly target: MemoryRange
  readonly queue: StreamHandle
  readonly requestedOp: unknown
  readonly requestedCount: number | undefined
  readonly requestedDType: DType | undefined
  /** What it passes to NCCL. */
  readonly words: Int32Array
  readonly operation: AgreedOperation
}

/** The last collective of each kind, by its number, where it may be recognised. */
export type RecentCollectives = (CheckedCollective | undefined)[]
