import { nameErrorClass, ShoalError, StatusError } from '@shoal/types'

/** Which communicator an error is about. */
export interface CommunicatorIdentity {
  /** Its place among the ranks, from 0. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of its device. */
  readonly device: number
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
  readonly device: number
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
    this.device = options.device
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
  const { operation, rank, worldSize, device, lastOperation, lostRanks, reason, cause } = options
  const queued = lastOperation === undefined ? '' : `, after ${lastOperation}`
  const lost = lostRanks === undefined || lostRanks.length === 0 ? '' : ` Lost: ${ranksInWords(lostRanks)}.`
  const why = cause === undefined ? '' : `: ${messageOf(cause)}`
  return (
    `${apiName(operation)} on rank ${rank} of ${worldSize} (device ${device})${queued}, which depends on ` +
    `${othersInWords(rank, worldSize)}, did not complete: the communicator was ` +
    `${reason === 'revoke' ? 'interrupted' : 'aborted'} because ${causes[reason]}${why}.${lost} ` +
    'Results of its operations are not valid; make a new communicator from the ranks that are left.'
  )
}

function othersInWords(rank: number, worldSize: number): string {
  if (worldSize === 1) return 'no other rank'
  if (worldSize > 9) return `the ${worldSize - 1} other ranks`
  return ranksInWords(Array.from({ length: worldSize }, (_, other) => other).filter((other) => other !== rank))
}

function ranksInWords(ranks: readonly number[]): string {
  return `rank${ranks.length === 1 ? '' : 's'} ${ranks.join(', ')}`
}

function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    // The reason of a signal may be anything, also what JavaScript makes no text of.
    return 'an object that has no text'
  }
}

/** One line about a cause, with NCCL's own words where it has some: only they say which ranks disagree, and on what. */
function messageOf(cause: unknown): string {
  const [words = ''] = textOf(cause instanceof Error ? cause.message : cause).split('\n')
  const told = cause instanceof StatusError ? (cause.lastError ?? '').trim().split('\n')[0] : ''
  const text = told ? `${words} (NCCL says: ${told})` : words
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
 * Why a communicator takes no call now. `'unconnected'`: an operation that connects ranks waits inside NCCL until the others
 * have called theirs, and one of them is in this thread, which would never come to its call.
 */
export type UnfitState = 'suspended' | 'revoked' | 'unconnected'

const waysOut: Readonly<Record<UnfitState, string>> = {
  suspended: 'resume() it first.',
  revoked: 'Only split, shrink, destroy and abort are left; make a new communicator.',
  unconnected:
    'NCCL would connect it now and wait for the calls of other ranks, of which this thread has one as well: ' +
    'put the calls of all ranks of this thread into one group() or groupAsync().',
}

/** What a CommunicatorStateError is made of. */
export interface CommunicatorStateErrorOptions extends CommunicatorIdentity {
  /** Method that was called, or the C function of the operation. */
  readonly operation: string
  /** What the communicator is in. */
  readonly state: UnfitState
}

/** The communicator is suspended, was revoked, or would wait for itself, and takes no such call now. Nothing was started. */
export class CommunicatorStateError extends ShoalError {
  static {
    nameErrorClass(CommunicatorStateError, 'CommunicatorStateError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_COMMUNICATOR_STATE'
  /** Method that was called, or the C function of the operation. */
  readonly operation: string
  /** What the communicator is in. */
  readonly state: UnfitState
  /** Its place among the ranks. */
  readonly rank: number
  /** Number of ranks. */
  readonly worldSize: number
  /** Ordinal of the device. */
  readonly device: number

  constructor(options: CommunicatorStateErrorOptions) {
    const { operation, state, rank, worldSize, device } = options
    super(`${apiName(operation)}: rank ${rank} of ${worldSize} (device ${device}) is ${state}. ${waysOut[state]}`)
    this.operation = operation
    this.state = state
    this.rank = rank
    this.worldSize = worldSize
    this.device = device
  }
}

/** What an operation is called in full: a method of Communicator, unless it says itself whose it is. */
export function apiName(operation: string): string {
  const isFull =
    operation === 'group' || operation === 'groupAsync' || operation.includes('.') || operation.startsWith('nccl')
  return isFull ? operation : `Communicator.${operation}`
}
