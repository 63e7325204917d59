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
 * The state of a usable communicator that calls need; one object per communicator.
 *
 * `children` contains objects made with it, `pending` its work on another thread.
 */
export interface LiveCommunicator {
  readonly handle: ncclComm_t
  readonly rank: number
  readonly worldSize: number
  readonly deviceOrdinal: number
  readonly context: bigint
  /** Whether NCCL has completed a call when it returns. */
  readonly isBlocking: boolean
  /** The last checked collectives, to recognize repeated ones. */
  readonly recent: RecentCollectives
  /** Windows, registrations, reduction operations and device communicators; the newest last. */
  children?: Set<Child> | undefined
  /** Work on another thread, during which the communicator accepts no other call. */
  pending?: Pending | undefined
  /** The ranks of this communicator in this thread; they share one object. */
  localRanks?: LocalRanks | undefined
  /** Whether operations of all ranks no longer need to connect; see `connections.ts`. */
  isConnected: boolean
  /** The connected peers, by direction; undefined if connecting does not block. */
  connectedPeers?: Set<number> | undefined
  /** The last group that used it, and its number of collectives there; see `operationMatch.ts`. */
  group: number
  groupLength: number
  /** C function of the last queued operation. */
  lastOperation?: string | undefined
  /** Wraps `work` in a promise that also rejects when the communicator fails. */
  readonly guard: Guard
  /** Counts the graphs that captured its operations. NCCL frees it after them. */
  readonly graphs: GraphUse
  /**
   * Refuses a communicator that cannot be used. @throws DisposedError, CommunicatorStateError, CommunicatorAbortedError
   */
  readonly requireUsable: (operation: string) => void
  /** Runs `work` after NCCL has freed the communicator and ended its background work. */
  readonly whenFreed: (work: () => void) => void
  /** How it ended, if it did; its handle is then invalid. */
  ended?: string | undefined
}

/** Makes a promise that also rejects on a signal, timeout or failed communicator. */
export type Guard = <T>(
  operation: string,
  work: (background: BackgroundWork) => Promise<T>,
  options: CommunicatorWaitOptions,
) => Promise<T>

/** An object made with a communicator, which ends with it at the latest. */
export interface Child {
  /** Releases it in NCCL, before the communicator is destroyed. Idempotent. */
  release(): Promise<void>
  /** Drops it without a release, because the aborted communicator has freed everything. */
  forget(): void
}

/** Work on another thread. */
export interface Pending {
  /** Name of the operation, for the error of a call meanwhile. */
  readonly operation: string
  /** Settles when it has completed; never rejects. */
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
 * Releases all children of a communicator, the newest first. Returns their errors.
 *
 * Await it before the communicator is finalized or destroyed. It continues after an error.
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

/** Drops all children of an aborted communicator. */
export function forgetChildren(live: LiveCommunicator): void {
  for (const child of live.children ?? []) child.forget()
  live.children = undefined
}

/** Throws if the communicator was destroyed or aborted. */
export function requireAlive(live: LiveCommunicator, operation: string): void {
  if (live.ended === undefined) return
  throw new DisposedError({
    object: `Communicator of rank ${live.rank} of ${live.worldSize} (${live.ended})`,
    operation,
  })
}

/** Requires that no work runs on another thread, because NCCL takes one call at a time. @throws BusyError */
export function requireIdle(live: LiveCommunicator, api: string): void {
  if (live.pending === undefined) return
  throw new BusyError({ object: 'Communicator', api, underWay: live.pending.operation })
}

/** Waits until a nonblocking communicator has completed the call `api`. */
export function settled(live: LiveCommunicator, api: string): Promise<void> {
  return untilSettled(
    () => live.handle,
    api,
    () => live.ended !== undefined,
  )
}

/** Waits for other work and keeps the process alive, which cancelled work does not do. */
async function whenEnded(works: readonly Promise<void>[], background: BackgroundWork): Promise<void> {
  if (works.length === 0) return
  const release = holdEventLoop(background)
  await Promise.all(works)
  release()
}

/** Waits until no work with a communicator runs on another thread. */
export async function whenNothingPending(live: LiveCommunicator, background: BackgroundWork): Promise<void> {
  while (live.pending !== undefined) await whenEnded([live.pending.ended], background)
}

/** Waits until no NCCL call of the communicator is in progress. */
export async function whenReady(live: LiveCommunicator, background: BackgroundWork): Promise<void> {
  await whenNothingPending(live, background)
  if (!live.isBlocking) await settled(live, 'ncclCommGetAsyncError')
}

/**
 * Runs `work`, which uses communicators on another thread, after earlier such work.
 *
 * Operations queued meanwhile are refused. The promise rejects as soon as a communicator fails, even while NCCL still
 * occupies the thread; the next work starts only when the thread is free.
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
 * Waits for the background work of a nonblocking communicator, during which it accepts no call.
 *
 * Other code reports the result of that work.
 */
async function untilIdle(live: LiveCommunicator, operation: string): Promise<void> {
  if (live.isBlocking) return
  await whenSettled(
    () => live.handle,
    () => live.ended !== undefined,
  )
  requireAlive(live, operation)
}

/** Like {@link exclusively}, without a guard. */
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

/** Runs `work`, and ends the wait early if one of the communicators fails. */
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
