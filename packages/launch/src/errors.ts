import { nameErrorClass, ShoalError } from '@shoal/types'

/** Formats `rank 3` or `ranks 1, 2 and 5`; shortens long lists. */
export function nameRanks(ranks: readonly number[]): string {
  if (ranks.length === 1) return `rank ${ranks[0]}`
  if (ranks.length > 16) return `ranks ${ranks.slice(0, 16).join(', ')} and ${ranks.length - 16} more`
  return `ranks ${ranks.slice(0, -1).join(', ')} and ${ranks.at(-1)}`
}

/** The environment names a launcher, but its variables are incomplete or contradictory. */
export class LaunchEnvironmentError extends ShoalError {
  static {
    nameErrorClass(LaunchEnvironmentError, 'LaunchEnvironmentError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_LAUNCH_ENVIRONMENT'
}

/** The rendezvous could not be reached or created, it refused this rank, or a call was wrong. */
export class RendezvousError extends ShoalError {
  static {
    nameErrorClass(RendezvousError, 'RendezvousError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_RENDEZVOUS'
}

/** The connection to the rendezvous ended, because its server process ended or is unreachable. */
export class RendezvousLostError extends ShoalError {
  static {
    nameErrorClass(RendezvousLostError, 'RendezvousLostError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_RENDEZVOUS_LOST'
}

/** Not all ranks arrived within the limit. */
export class RendezvousTimeoutError extends ShoalError {
  static {
    nameErrorClass(RendezvousTimeoutError, 'RendezvousTimeoutError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_RENDEZVOUS_TIMEOUT'
  /** The awaited operation, such as `barrier 'start'`. */
  readonly operation: string
  /** The limit in milliseconds. */
  readonly timeout: number
  /** The missing ranks, ascending; empty if unknown. */
  readonly missing: readonly number[]

  constructor(operation: string, timeout: number, missing: readonly number[], detail?: string) {
    const who = missing.length === 0 ? '' : `: ${nameRanks(missing)} did not come`
    super(`${operation} did not end within ${timeout} ms${who}${detail === undefined ? '' : `. ${detail}`}`)
    this.operation = operation
    this.timeout = timeout
    this.missing = missing
  }
}

/**
 * Ranks of the job died, or left while other ranks waited for them.
 *
 * @example
 * if (error instanceof RanksLostError) job = await job.survivors()
 */
export class RanksLostError extends ShoalError {
  static {
    nameErrorClass(RanksLostError, 'RanksLostError')
  }

  /** The same for every error of this class. */
  readonly code = 'SHOAL_RANKS_LOST'
  /** The ranks, ascending. */
  readonly ranks: readonly number[]
  /** The awaited operation; absent in the reason of `job.lost`. */
  declare readonly operation?: string

  constructor(ranks: readonly number[], how: 'lost' | 'left' = 'lost', operation?: string) {
    const what = how === 'left' ? 'left the job' : ranks.length === 1 ? 'was lost' : 'were lost'
    super(`${operation === undefined ? '' : `${operation} cannot end: `}${nameRanks(ranks)} ${what}`)
    this.ranks = ranks
    if (operation !== undefined) this.operation = operation
  }
}
