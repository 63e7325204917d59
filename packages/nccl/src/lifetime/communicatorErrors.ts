import { describeValue, nameErrorClass, ShoalError, StatusError } from '@shoal/types'

/** Which communicator an error is about. */
export interface CommunicatorIdentity {
  /** Its place among the ranks, from 0. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of its device. */
  readonly deviceOrdinal: number
}

/** Why a communicator was aborted. */
export type AbortReason =
  /** An `AbortSignal` given when it was made, or to a wait, fired. */
  | 'signal'
  /** A wait took longer than its `timeout`. */
  | 'timeout'
  /** NCCL itself reported an error: a lost connection, a rank that died. */
  | 'async-error'
  /** `abort()` was called. */
  | 'abort'
  /** `revoke()`, or `shrink()` with `abort`, ended what was under way; the communicator is still there. */
  | 'revoke'
  /** The communicator whose resources it shares was aborted. */
  | 'parent'

/** What a CommunicatorAbortedError is made of. */
export interface CommunicatorAbortedErrorOptions extends CommunicatorIdentity {
  /** Method that was waiting, or was called too late, such as `'synchronize'`. */
  readonly operation: string
  /** What aborted it. */
  readonly reason: AbortReason
  /** The operation that was last queued, such as `'allReduce'`. */
  readonly lastOperation?: string | undefined
  /** Ranks known to be gone. */
  readonly lostRanks?: readonly number[] | undefined
  /** The reason of the signal, or the error that NCCL reported. */
  readonly cause?: unknown
}

/**
 * The communicator was aborted while something waited for it, or before something wanted to use it. What its operations
 * should have written is not there: NCCL lets the streams of an aborted communicator go on as if all were well.
 */
export class CommunicatorAbortedError extends ShoalError {
  static {
    nameErrorClass(CommunicatorAbortedError, 'CommunicatorAbortedError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_COMMUNICATOR_ABORTED'
  /** Method that was waiting, or was called too late. */
  readonly operation: string
  /** What aborted it. */
  readonly reason: AbortReason
  /** This communicator's place among the ranks. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of the device. */
  readonly deviceOrdinal: number
  /** The operation that was last queued. */
  declare readonly lastOperation?: string
  /** Ranks that are gone, where the reason of the signal names them; in the numbering of whoever fired the signal. */
  declare readonly lostRanks?: readonly number[]

  constructor(options: CommunicatorAbortedErrorOptions) {
    super(abortedMessage(options), options)
    this.operation = options.operation
    this.reason = options.reason
    this.rank = options.rank
    this.worldSize = options.worldSize
    this.deviceOrdinal = options.deviceOrdinal
    if (options.lastOperation !== undefined) this.lastOperation = options.lastOperation
    if (options.lostRanks !== undefined) this.lostRanks = options.lostRanks
  }
}

const causes: { readonly [R in AbortReason]: string } = {
  signal: 'its signal fired',
  timeout: 'the time limit of a wait passed',
  'async-error': 'NCCL reported an error',
  abort: 'abort() was called',
  revoke: 'it was revoked',
  parent: 'the communicator whose resources it shares was aborted',
}

function abortedMessage(options: CommunicatorAbortedErrorOptions): string {
  const { operation, rank, worldSize, deviceOrdinal, lastOperation, lostRanks, reason, cause } = options
  const queued = lastOperation === undefined ? '' : `, after ${lastOperation}`
  const lost = lostRanks === undefined || lostRanks.length === 0 ? '' : ` Lost: ${listRanks(lostRanks)}.`
  const why = cause === undefined ? '' : `: ${messageOf(cause)}`
  return (
    `${apiName(operation)} on rank ${rank} of ${worldSize} (device ${deviceOrdinal})${queued}, which depends on ` +
    `${listOtherRanks(rank, worldSize)}, did not complete: the communicator was ` +
    `${reason === 'revoke' ? 'interrupted' : 'aborted'} because ${causes[reason]}${why}.${lost} ` +
    'Results of its operations are not valid; make a new communicator from the ranks that are left.'
  )
}

function listOtherRanks(rank: number, worldSize: number): string {
  if (worldSize === 1) return 'no other rank'
  if (worldSize > 9) return `the ${worldSize - 1} other ranks`
  return listRanks(Array.from({ length: worldSize }, (_, other) => other).filter((other) => other !== rank))
}

function listRanks(ranks: readonly number[]): string {
  return `rank${ranks.length === 1 ? '' : 's'} ${ranks.join(', ')}`
}

function textOf(cause: unknown): string {
  const text: unknown = cause instanceof Error ? cause.message : cause
  return typeof text === 'string' ? text : describeValue(text)
}

/** One line about a cause, with NCCL's own words where it has some: only they say which ranks disagree, and on what. */
function messageOf(cause: unknown): string {
  const [message = ''] = textOf(cause).split('\n')
  const lastError = cause instanceof StatusError ? (cause.lastError ?? '').trim().split('\n')[0] : ''
  const text = lastError ? `${message} (NCCL says: ${lastError})` : message
  return text.endsWith('.') ? text.slice(0, -1) : text
}

/** Ranks that the reason of a signal names, in `ranks` or `lostRanks`; undefined where it names none. */
export function lostRanksIn(reason: unknown): readonly number[] | undefined {
  if (typeof reason !== 'object' || reason === null) return undefined
  try {
    const { ranks, lostRanks } = reason as { readonly ranks?: unknown; readonly lostRanks?: unknown }
    for (const list of [lostRanks, ranks]) {
      if (Array.isArray(list) && list.length > 0 && list.every((rank) => Number.isInteger(rank))) return [...list]
    }
  } catch {
    // A getter of the program's threw. Whoever waits is told of the abort all the same.
  }
  return undefined
}

/**
 * Why a communicator takes no call now. `'unconnected'`: an operation that connects ranks waits inside NCCL until the
 * others have called theirs, and one of them is in this thread, which would never come to its call.
 */
export type InvalidState = 'suspended' | 'revoked' | 'unconnected'

const hints: Readonly<Record<InvalidState, string>> = {
  suspended: 'resume() it first.',
  revoked: 'Only split, shrink, destroy and abort are left; make a new communicator.',
  unconnected:
    'NCCL would connect it now and wait for the calls of other ranks, of which this thread has one as well: ' +
    'put the calls of all ranks of this thread into one group() or groupOffThread().',
}

/** What a CommunicatorStateError is made of. */
export interface CommunicatorStateErrorOptions extends CommunicatorIdentity {
  /** Method that was called, or the C function of the operation. */
  readonly operation: string
  /** What the communicator is in. */
  readonly state: InvalidState
}

/**
 * The communicator is suspended, was revoked, or would wait for itself, and takes no such call now. Nothing was
 * started.
 */
export class CommunicatorStateError extends ShoalError {
  static {
    nameErrorClass(CommunicatorStateError, 'CommunicatorStateError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_COMMUNICATOR_STATE'
  /** Method that was called, or the C function of the operation. */
  readonly operation: string
  /** What the communicator is in. */
  readonly state: InvalidState
  /** Its place among the ranks. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of the device. */
  readonly deviceOrdinal: number

  constructor(options: CommunicatorStateErrorOptions) {
    const { operation, state, rank, worldSize, deviceOrdinal } = options
    super(`${apiName(operation)}: rank ${rank} of ${worldSize} (device ${deviceOrdinal}) is ${state}. ${hints[state]}`)
    this.operation = operation
    this.state = state
    this.rank = rank
    this.worldSize = worldSize
    this.deviceOrdinal = deviceOrdinal
  }
}

/** What an operation is called in full: a method of Communicator, unless it says itself whose it is. */
export function apiName(operation: string): string {
  const isFull = operation.startsWith('group') || operation.includes('.') || operation.startsWith('nccl')
  return isFull ? operation : `Communicator.${operation}`
}
