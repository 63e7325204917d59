import { type DType, type OptionKeys, optionsChecker, type StreamArgument } from '@shoal/types'
import type { ReduceOp } from './reduceOp.js'
import type { PreMulSum } from './reductionOps.js'

/** Options of all operations. */
export interface CollectiveOptions {
  /**
   * Stream to queue on: a stream object, a bare `cudaStream_t`, or null for the default stream. Default: the stream of
   * `Stream.use`, else the default stream.
   */
  readonly stream?: StreamArgument | undefined
  /** Number of elements. Default: all elements; the buffers must then match. */
  readonly count?: number | undefined
  /** Type of the elements; required if neither buffer has one. */
  readonly dtype?: DType | undefined
}

/** Options of reductions. */
export interface ReductionOptions extends CollectiveOptions {
  /**
   * The operation. Default: `'sum'`.
   *
   * Pass a name, the result of this communicator's `createPreMulSum`, or the `ncclRedOp_t` of an operation made by raw
   * functions.
   */
  readonly op?: ReduceOp | PreMulSum | number | undefined
}

/** Option that selects the root. */
export interface RootOptions {
  /** Rank that sends the data (broadcast, scatter) or gets the result (reduce, gather). */
  readonly root: number
}

export const collectiveKeys: OptionKeys<CollectiveOptions> = { stream: true, count: true, dtype: true }
export const reductionKeys: OptionKeys<ReductionOptions> = { ...collectiveKeys, op: true }
export const requireRootOptions = optionsChecker<CollectiveOptions & RootOptions>({ ...collectiveKeys, root: true })
export const requireRootReduction = optionsChecker<ReductionOptions & RootOptions>({ ...reductionKeys, root: true })
