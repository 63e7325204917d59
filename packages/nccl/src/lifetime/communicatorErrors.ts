import { describeValue, nameErrorClass, ShoalError, StatusError } from '@shoal/types'

/** Identity of a communicator in an error. */
export interface CommunicatorIdentity {
  /** Its rank, from 0. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of its device. */
  readonly deviceOrdinal: number
}

/** Why a communicator was aborted. */
export type AbortReason =
  /** The `AbortSignal` of its creation or of a wait fired. */
  | 'signal'
  /** A wait exceeded its `timeout`. */
  | 'timeout'
  /** NCCL reported an error, such as a lost connection or rank. */
  | 'async-error'
  /** `abort()` was called. */
  | 'abort'
  /** `revoke()`, or `shrink()` with `abort`, ended work in flight; the communicator still exists. */
  | 'revoke'
  /** The communicator with which this one shares resources was aborted. */
  | 'parent'

/** Options of the CommunicatorAbortedError constructor. */
export interface CommunicatorAbortedErrorOptions extends CommunicatorIdentity {
  /** Method that was waiting, or was called too late, such as `'synchronize'`. */
  readonly operation: string
  /** Reason of the abort. */
  readonly reason: AbortReason
  /** The last queued operation, such as `'allReduce'`. */
  readonly lastOperation?: string | undefined
  /** Known lost ranks. */
  readonly lostRanks?: readonly number[] | undefined
  /** The reason of the signal, or the error that NCCL reported. */
  readonly cause?: unknown
}

/**
 * The communicator was aborted during a wait, or before a call.
 *
 * The results of its operations are invalid: NCCL lets the streams of an aborted communicator continue without an
 * error.
 */
export class CommunicatorAbortedError extends ShoalError {
  static {
    nameErrorClass(CommunicatorAbortedError, 'CommunicatorAbortedError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_COMMUNICATOR_ABORTED'
  /** Method that was waiting, or was called too late. */
  readonly operation: string
  /** What aborted the communicator. */
  readonly reason: AbortReason
  /** Rank of this communicator. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of the device. */
  readonly deviceOrdinal: number
  /** The last queued operation. */
  declare readonly lastOperation?: string
  /** Lost ranks that the signal's reason names, in the numbering of its source. */
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

/**
 * Formats a cause on one line, with NCCL's message.
 *
 * Only that message says which ranks disagree and why.
 */
function messageOf(cause: unknown): string {
  const [message = ''] = textOf(cause).split('\n')
  const lastError = cause instanceof StatusError ? (cause.lastError ?? '').trim().split('\n')[0] : ''
  const text = lastError ? `${message} (NCCL says: ${lastError})` : message
  return text.endsWith('.') ? text.slice(0, -1) : text
}

/** Returns the ranks in `ranks` or `lostRanks` of a signal's reason; undefined if there are none. */
export function lostRanksIn(reason: unknown): readonly number[] | undefined {
  if (typeof reason !== 'object' || reason === null) return undefined
  try {
    const { ranks, lostRanks } = reason as { readonly ranks?: unknown; readonly lostRanks?: unknown }
    for (const list of [lostRanks, ranks]) {
      if (Array.isArray(list) && list.length > 0 && list.every((rank) => Number.isInteger(rank))) return [...list]
    }
  } catch {
    // A getter of the program threw. The abort is reported without the ranks.
  }
  return undefined
}

/**
 * Why a communicator refuses a call.
 *
 * `'unconnected'`: the operation would connect ranks and wait inside NCCL for a rank of this thread, which could never
 * make its call.
 */
export type InvalidState = 'suspended' | 'revoked' | 'unconnected'

const hints: Readonly<Record<InvalidState, string>> = {
  suspended: 'resume() it first.',
  revoked: 'Only split, shrink, destroy and abort are left; make a new communicator.',
  unconnected:
    'NCCL would connect it now and wait for the calls of other ranks, of which this thread has one as well: ' +
    'put the calls of all ranks of this thread into one group() or groupOffThread().',
}

/** Options of the CommunicatorStateError constructor. */
export interface CommunicatorStateErrorOptions extends CommunicatorIdentity {
  /** Method that was called, or the C function of the operation. */
  readonly operation: string
  /** State of the communicator. */
  readonly state: InvalidState
}

/**
 * The communicator is suspended or was revoked, or the call would wait for a rank of its own thread. Nothing was
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
  /** State of the communicator. */
  readonly state: InvalidState
  /** Rank of the communicator. */
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

/** Returns the full name of an operation: a method of Communicator, unless the name has another owner. */
export function apiName(operation: string): string {
  const isFull = operation.startsWith('group') || operation.includes('.') || operation.startsWith('nccl')
  return isFull ? operation : `Communicator.${operation}`
}
