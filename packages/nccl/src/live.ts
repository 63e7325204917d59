import type { ncclComm_t } from '@shoal/nccl-sys'
import type { CheckedAllReduce } from './collectives.js'

/**
 * A communicator that can be used: what a call needs to know of it. One object for the life of a communicator; what is
 * made with it is kept in `children`, what runs on another thread in `pending`.
 */
export interface LiveCommunicator {
  readonly handle: ncclComm_t
  readonly rank: number
  readonly worldSize: number
  readonly device: number
  readonly context: bigint
  /** The last all-reduce, where it may be recognised. */
  lastAllReduce?: CheckedAllReduce | undefined
  /** Windows, registrations, reduction operations, device communicators: the newest last. */
  children?: Set<Child> | undefined
  /** What runs on another thread with this communicator, which meanwhile takes nothing else. */
  pending?: Pending | undefined
}

/** What is made with a communicator and ends with it at the latest. */
export interface Child {
  /** Gives it back to NCCL; idempotent. The communicator is destroyed next. */
  release(): Promise<void>
  /** The communicator was aborted, which has freed everything: there is nothing to give back any more. */
  forget(): void
}

/** Work on another thread. */
export interface Pending {
  /** Name of the operation, for the error of a call that comes in between. */
  readonly operation: string
  /** Settles when it is over; never rejects. */
  readonly ended: Promise<void>
}

export function addChild(live: LiveCommunicator, child: Child): void {
  live.children ??= new Set()
  live.children.add(child)
}

export function removeChild(live: LiveCommunicator, child: Child): void {
  live.children?.delete(child)
}

/**
 * Gives everything that was made with a communicator back, the newest first: to be awaited before the communicator is
 * finalized or destroyed. Returns what failed; the rest is given back all the same.
 */
export async function releaseChildren(live: LiveCommunicator): Promise<unknown[]> {
  const errors: unknown[] = []
  for (const child of [...(live.children ?? [])].reverse()) {
    try {
      await child.release()
    } catch (error) {
      errors.push(error)
    }
  }
  return errors
}

/** To be called when a communicator is aborted: what was made with it is gone too. */
export function forgetChildren(live: LiveCommunicator): void {
  for (const child of live.children ?? []) child.forget()
  live.children = undefined
}

/** Throws while something else runs with this communicator on another thread: NCCL takes one call at a time. */
export function requireIdle(live: LiveCommunicator, api: string): void {
  if (live.pending !== undefined) throw busy(live.pending, api)
}

function busy({ operation }: Pending, api: string): Error {
  return new Error(`${api}: ${operation} is still under way on this communicator; await its promise first`)
}

/**
 * Runs `work`, which uses the communicator on another thread, after whatever does so now; operations that are queued
 * meanwhile are refused.
 */
export async function exclusively<T>(
  lives: readonly LiveCommunicator[],
  operation: string,
  work: () => Promise<T>,
): Promise<T> {
  const before = lives.map(({ pending }) => pending?.ended)
  let end: () => void = () => undefined
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const pending: Pending = { operation, ended }
  for (const live of lives) live.pending = pending
  try {
    await Promise.all(before)
    return await work()
  } finally {
    for (const live of lives) if (live.pending === pending) live.pending = undefined
    end()
  }
}
