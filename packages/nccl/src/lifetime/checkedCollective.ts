import type { ncclComm_t, ncclDataType_t, ncclRedOp_t } from '@shoal/nccl-sys'
import type { DType, MemoryRange, StreamHandle } from '@shoal/types'

// Records of a communicator about its collectives.

/** The part of a collective that all ranks must agree on; -1 for fields it does not have. */
export interface OperationSignature {
  /** C function. */
  readonly api: string
  /** Elements of a reduction, or bytes of a copy. */
  readonly amount: number
  /** `ncclDataType_t` of a reduction. */
  readonly type: number
  readonly op: number
  readonly root: number
}

/** Checked arguments of a collective for NCCL. */
export interface CollectiveArguments {
  readonly source: MemoryRange
  readonly target: MemoryRange
  readonly count: number
  /** The upper 32 bits of `count`. */
  readonly countHigh: number
  readonly type: ncclDataType_t
  /** Only reductions pass it. */
  readonly op: ncclRedOp_t
  readonly communicator: ncclComm_t
  readonly queue: StreamHandle
}

/** A collective with checked operands, and its original options. */
export interface CheckedCollective extends CollectiveArguments {
  readonly requestedOp: unknown
  readonly requestedCount: number | undefined
  readonly requestedDType: DType | undefined
  /** The first rank's object with equal values, so that the next comparison is fast. */
  operation: OperationSignature
}

/** The last repeatable collective of each kind, by its number. */
export type RecentCollectives = (CheckedCollective | undefined)[]
