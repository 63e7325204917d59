import { type DType, type OptionKeys, optionsChecker, type StreamArgument } from '@shoal/types'
import type { ReduceOp } from './reduceOp.js'
import type { PreMulSum } from './reductionOps.js'

/** What all operations take. */
export interface CollectiveOptions {
  /**
   * Stream the operation is queued on: a stream object, a bare `cudaStream_t`, or null for the default
   * stream. Default: that of `Stream.use`, else the default stream.
   */
  readonly stream?: StreamArgument | undefined
  /** Number of elements. Default: all of them, and then the buffers have to match. */
  readonly count?: number | undefined
  /** Type of the elements; needed where neither buffer carries one. */
  readonly dtype?: DType | undefined
}

/** What operations that combine elements take. */
export interface ReductionOptions extends CollectiveOptions {
  /**
   * A named operation, one made by `createPreMulSum` of the same communicator, or the `ncclRedOp_t` of one that was
   * made by raw functions. Default `'sum'`.
   */
  readonly op?: ReduceOp | PreMulSum | number | undefined
}

/** The rank that an operation is about. */
export interface RootOptions {
  /** Rank whose data is sent (broadcast, scatter) or that gets the result (reduce, gather). */
  readonly root: number
}

export const collectiveKeys: OptionKeys<CollectiveOptions> = { stream: true, count: true, dtype: true }
export const reductionKeys: OptionKeys<ReductionOptions> = { ...collectiveKeys, op: true }
export const requireRootOptions = optionsChecker<CollectiveOptions & RootOptions>({ ...collectiveKeys, root: true })
export const requireRootReduction = optionsChecker<ReductionOptions & RootOptions>({ ...reductionKeys, root: true })
