import { nextTurn } from '@shoal/ffi'
import { BusyError, nameErrorClass, ShoalError } from '@shoal/types'
import type { LiveCommunicator } from '../lifetime/live.js'

/** A call that is made later, and what it must find there then: memory and streams, whatever else is among them. */
export interface CollectedCall {
  readonly api: string
  readonly live: LiveCommunicator
  readonly call: () => number
  readonly operands: readonly unknown[]
}

/** What `groupOffThread` gathers while its function runs. */
export interface Collected {
  readonly calls: CollectedCall[]
  /** To be done once the calls have been made. */
  readonly after: (() => void)[]
}

/**
 * The group of this thread. NCCL keeps its depth per thread; a worker has its own thread and its own copy of this
 * module. `unmade` counts the operations of it that were begun and not made, because an argument or NCCL's library was
 * wrong.
 */
export const groupState: { depth: number; collected: Collected | undefined; unmade: number } = {
  depth: 0,
  collected: undefined,
  unmade: 0,
}

/** Whether a group is open on this thread. */
export function isGroupOpen(): boolean {
  return groupState.depth > 0
}

/** Whether operations are gathered for `groupOffThread`. */
export function isCollecting(): boolean {
  return groupState.collected !== undefined
}

/** Throws where a group is open on this thread: its operations start when it ends. @throws BusyError */
export function requireNoGroup(api: string): void {
  if (!isGroupOpen() && !isCollecting()) return
  throw new BusyError({ object: 'thread', api, underWay: 'a group', hint: 'its operations start when it ends' })
}

/**
 * Settles once no group is open on this thread: soon, since none should be open for longer than a turn of the event
 * loop.
 */
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
  /** The function that found it, such as `'groupEnd'`. */
  readonly api: string

  constructor(api: string, problem: string) {
    super(`${api}: ${problem}`)
    this.api = api
  }
}
