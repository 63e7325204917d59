import type { ncclComm_t, ncclDataType_t, ncclRedOp_t } from '@shoal/nccl-sys'
import type { DType, MemoryRange, StreamHandle } from '@shoal/types'

// What a communicator notes of the collectives that were asked of it.

/** A collective operation, as far as all ranks of a communicator have to agree on it; -1 stands where it has none. */
export interface OperationSignature {
  /** C function. */
  readonly api: string
  /** Elements of a reduction, bytes of what is only moved. */
  readonly amount: number
  /** `ncclDataType_t` of a reduction. */
  readonly type: number
  readonly op: number
  readonly root: number
}

/** What a collective passes to NCCL, found to be right. */
export interface CollectiveArguments {
  readonly source: MemoryRange
  readonly target: MemoryRange
  readonly count: number
  /** Its upper 32 bits. */
  readonly countHigh: number
  readonly type: ncclDataType_t
  /** Only reductions pass it. */
  readonly op: ncclRedOp_t
  readonly communicator: ncclComm_t
  readonly queue: StreamHandle
}

/** A collective whose operands were found to be right, and what it was asked with. */
export interface CheckedCollective extends CollectiveArguments {
  readonly requestedOp: unknown
  readonly requestedCount: number | undefined
  readonly requestedDType: DType | undefined
  /** The object of the first rank that asked for the same, so that the next comparison is quick. */
  operation: OperationSignature
}

/** The last collective of each kind, by its number, where it may be recognised. */
export type RecentCollectives = (CheckedCollective | undefined)[]
