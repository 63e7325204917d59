import { nextTurn } from '@shoal/ffi'
import { BusyError, nameErrorClass, ShoalError } from '@shoal/types'
import type { LiveCommunicator } from '../lifetime/live.js'

/** A deferred call, and the operands that must exist when it is made. */
export interface CollectedCall {
  readonly api: string
  readonly live: LiveCommunicator
  readonly call: () => number
  readonly operands: readonly unknown[]
}

/** Calls that `groupOffThread` collects while its function runs. */
export interface Collected {
  readonly calls: CollectedCall[]
  /** Functions to run after the calls were made. */
  readonly after: (() => void)[]
}

/**
 * State of this thread's group.
 *
 * NCCL keeps its depth per thread, and a worker has its own copy of this module. `unmade` counts operations that were
 * started but not made, because an argument or NCCL's library was wrong.
 */
export const groupState: { depth: number; collected: Collected | undefined; unmade: number } = {
  depth: 0,
  collected: undefined,
  unmade: 0,
}

/** True if a group is open on this thread. */
export function isGroupOpen(): boolean {
  return groupState.depth > 0
}

/** True if operations are collected for `groupOffThread`. */
export function isCollecting(): boolean {
  return groupState.collected !== undefined
}

/** Refuses an open group, whose operations start only when it ends. @throws BusyError */
export function requireNoGroup(api: string): void {
  if (!isGroupOpen() && !isCollecting()) return
  throw new BusyError({ object: 'thread', api, underWay: 'a group', hint: 'its operations start when it ends' })
}

/** Resolves when no group is open on this thread, usually within one event loop turn. */
export async function whenNoGroup(): Promise<void> {
  await undefined
  while (isGroupOpen()) await nextTurn()
}

/** `groupStart()` and `groupEnd()` do not match, or an operation between them was refused. */
export class GroupStateError extends ShoalError {
  static {
    nameErrorClass(GroupStateError, 'GroupStateError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_GROUP_STATE'
  /** The function that detected the error, such as `'groupEnd'`. */
  readonly api: string

  constructor(api: string, problem: string) {
    super(`${api}: ${problem}`)
    this.api = api
  }
}
