import type { MemoryLike } from '@shoal/types'
import {
  allGather,
  allReduce,
  broadcast,
  type CollectiveOptions,
  type ReductionOptions,
  type RootOptions,
  reduce,
  reduceScatter,
} from './collectives.js'
import type { LiveCommunicator } from './live.js'

/** What a communicator does for the data of its rank: the operations of `Communicator`. */
export abstract class CommunicatorOperations {
  /** @internal The communicator, for an operation that is about to use it. @throws DisposedError when it takes none any more. */
  protected abstract _use(operation: string): LiveCommunicator

  /**
   * Combines the elements of `send` over all ranks and leaves the result in `recv` on every rank (`ncclAllReduce`).
   * The same buffer twice works in place.
   *
   * @throws TypeError, RangeError, DisposedError for wrong arguments, before NCCL is called; StatusError when it refuses.
   */
  allReduce(send: MemoryLike, recv: MemoryLike, options: ReductionOptions): void {
    allReduce(this._use('allReduce'), send, recv, options)
  }

  /**
   * Copies `send` of rank `root` into `recv` of every rank (`ncclBroadcast`). `send` is looked at on the root only and
   * may be null elsewhere; the same buffer twice works in place.
   */
  broadcast(send: MemoryLike | null, recv: MemoryLike, options: CollectiveOptions & RootOptions): void {
    broadcast(this._use('broadcast'), send, recv, options)
  }

  /**
   * Combines the elements of `send` over all ranks and leaves the result in `recv` of rank `root` (`ncclReduce`).
   * `recv` may be null on the other ranks; the same buffer twice works in place.
   */
  reduce(send: MemoryLike, recv: MemoryLike | null, options: ReductionOptions & RootOptions): void {
    reduce(this._use('reduce'), send, recv, options)
  }

  /**
   * Puts the `send` of all ranks one after the other into `recv` of every rank (`ncclAllGather`). `count` is that of
   * one rank. In place when `send` is this rank's part of `recv`.
   */
  allGather(send: MemoryLike, recv: MemoryLike, options: CollectiveOptions): void {
    allGather(this._use('allGather'), send, recv, options)
  }

  /**
   * Combines the elements of `send` over all ranks and leaves each rank its part of the result in `recv`
   * (`ncclReduceScatter`). `count` is that of one part. In place when `recv` is this rank's part of `send`.
   */
  reduceScatter(send: MemoryLike, recv: MemoryLike, options: ReductionOptions): void {
    reduceScatter(this._use('reduceScatter'), send, recv, options)
  }
}
