import type { GraphUse } from '@shoal/driver/basics'
import type { BackgroundWork } from '@shoal/ffi'
import { holdEventLoop } from '@shoal/ffi/calls'
import type { ncclComm_t } from '@shoal/nccl-sys'
import { BusyError, DisposedError } from '@shoal/types'
import { untilSettled, whenSettled } from './asyncStatus.js'
import type { RecentCollectives } from './checkedCollective.js'
import type { LocalRanks } from './localRanks.js'
import type { CommunicatorWaitOptions } from './waitOptions.js'

/**
 * A communicator that can be used: what a call needs to know of it. One object for the life of a communicator; what is
 * made with it is kept in `children`, what runs on another thread in `pending`.
 */
export interface LiveCommunicator {
  readonly handle: ncclComm_t
  readonly rank: number
  readonly worldSize: number
  readonly deviceOrdinal: number
  readonly context: bigint
  /** Whether NCCL is done with a call when it returns. */
  readonly isBlocking: boolean
  /** The last collectives, where they may be recognised. */
  readonly recent: RecentCollectives
  /** Windows, registrations, reduction operations, device communicators: the newest last. */
  children?: Set<Child> | undefined
  /** What runs on another thread with this communicator, which meanwhile takes nothing else. */
  pending?: Pending | undefined
  /** The ranks of this communicator that are in this thread; the same object for all of them. */
  localRanks?: LocalRanks | undefined
  /** Whether operations of all ranks no longer wait for them; see `connections.ts`. */
  isConnected: boolean
  /** The peers to which it is connected, by direction; undefined where it does not wait for that. */
  connectedPeers?: Set<number> | undefined
  /** The group in which it was used last, and how many collectives were asked of it there; see `operationMatch.ts`. */
  group: number
  groupLength: number
  /** C function of the operation that was queued last. */
  lastOperation?: string | undefined
  /** The promise of `work`, but one that rejects when the communicator fails meanwhile. */
  readonly guard: Guard
  /** Counts the graphs that have captured its operations. NCCL frees it after them. */
  readonly graphs: GraphUse
  /** @throws DisposedError, CommunicatorStateError, CommunicatorAbortedError when it takes no operations any more */
  readonly requireUsable: (operation: string) => void
  /** Has something done once NCCL has freed it, and so does nothing for it any more in the background. */
  readonly whenFreed: (work: () => void) => void
  /** How it ended, where it did; the handle must not be used any more. */
  ended?: string | undefined
}

/** Makes a promise of work that rejects when the communicator fails meanwhile, also by a signal or a time limit. */
export type Guard = <T>(
  operation: string,
  work: (background: BackgroundWork) => Promise<T>,
  options: CommunicatorWaitOptions,
) => Promise<T>

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

/** Throws when the communicator was destroyed or aborted. */
export function requireAlive(live: LiveCommunicator, operation: string): void {
  if (live.ended === undefined) return
  throw new DisposedError({
    object: `Communicator of rank ${live.rank} of ${live.worldSize} (${live.ended})`,
    operation,
  })
}

/**
 * NCCL takes one call at a time. @throws BusyError while something else runs with this communicator on another thread.
 */
export function requireIdle(live: LiveCommunicator, api: string): void {
  if (live.pending === undefined) return
  throw new BusyError({ object: 'Communicator', api, underWay: live.pending.operation })
}

/** Waits until a communicator that does not block has done what the call `api` left in progress. */
export function settled(live: LiveCommunicator, api: string): Promise<void> {
  return untilSettled(
    () => live.handle,
    api,
    () => live.ended !== undefined,
  )
}

/** Waits for work of others: where that was given up it does not keep the process alive any more, and this does. */
async function whenEnded(works: readonly Promise<void>[], background: BackgroundWork): Promise<void> {
  if (works.length === 0) return
  const release = holdEventLoop(background)
  await Promise.all(works)
  release()
}

/** Until nothing runs on another thread with a communicator. */
export async function whenNothingPending(live: LiveCommunicator, background: BackgroundWork): Promise<void> {
  while (live.pending !== undefined) await whenEnded([live.pending.ended], background)
}

/** Until nothing that NCCL was asked for is under way. */
export async function whenReady(live: LiveCommunicator, background: BackgroundWork): Promise<void> {
  await whenNothingPending(live, background)
  if (!live.isBlocking) await settled(live, 'ncclCommGetAsyncError')
}

/**
 * Runs `work`, which uses the communicator on another thread, after whatever does so now; operations that are queued
 * meanwhile are refused. The promise rejects as soon as a communicator fails, even where NCCL still holds the thread:
 * only then is it the next one's turn.
 */
export function exclusively<T>(
  lives: readonly LiveCommunicator[],
  operation: string,
  work: (background: BackgroundWork) => Promise<T>,
  options: CommunicatorWaitOptions = {},
): Promise<T> {
  const whenIdle = async (background: BackgroundWork): Promise<T> => {
    for (const live of lives) await untilIdle(live, operation)
    return work(background)
  }
  return guarded(
    lives,
    operation,
    (background) => inTurn(lives, operation, () => whenIdle(background), background),
    options,
  )
}

/**
 * Waits while NCCL is at work in the background for a communicator that does not block, and takes no call meanwhile.
 * What comes of that work is for others to tell.
 */
async function untilIdle(live: LiveCommunicator, operation: string): Promise<void> {
  if (live.isBlocking) return
  await whenSettled(
    () => live.handle,
    () => live.ended !== undefined,
  )
  requireAlive(live, operation)
}

/** The same without a guard. */
export async function inTurn<T>(
  lives: readonly LiveCommunicator[],
  operation: string,
  work: () => Promise<T>,
  background: BackgroundWork,
): Promise<T> {
  const before = lives.flatMap(({ pending }) => (pending === undefined ? [] : [pending.ended]))
  let end: () => void = () => undefined
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const pending: Pending = { operation, ended }
  for (const live of lives) live.pending = pending
  try {
    await whenEnded(before, background)
    for (const live of lives) requireAlive(live, operation)
    return await work()
  } finally {
    for (const live of lives) if (live.pending === pending) live.pending = undefined
    end()
  }
}

/** `work`, which ends early when one of the communicators fails meanwhile. */
function guarded<T>(
  lives: readonly LiveCommunicator[],
  operation: string,
  work: (background: BackgroundWork) => Promise<T>,
  options: CommunicatorWaitOptions,
): Promise<T> {
  const background: BackgroundWork = {}
  let guardedWork = (): Promise<T> => work(background)
  for (const { guard } of lives) {
    const inner = guardedWork
    guardedWork = () =>
      guard(
        operation,
        (outer) => {
          outer.release = () => background.release?.()
          return inner()
        },
        options,
      )
  }
  return guardedWork()
}
