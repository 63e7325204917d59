import {
  type ncclTeam,
  ncclTeam as ncclTeamLayout,
  ncclTeamLsa,
  ncclTeamRail,
  ncclTeamRankToLsa,
  ncclTeamRankToWorld,
  ncclTeamWorld,
} from '@shoal/nccl-sys'
import {
  inspectKey,
  inspectLine,
  outOfRange,
  PublicObject,
  propertyOf,
  requireInteger,
  requireKeyOf,
  requireMade,
  wrongType,
} from '@shoal/types'
import { type LiveCommunicator, requireAlive, requireIdle } from '../lifetime/live.js'

/**
 * Teams of NCCL: all ranks (world), the ranks that loads and stores reach (LSA), or the ranks with the same position in
 * the other LSA teams (rail).
 */
export type TeamName = 'world' | 'lsa' | 'rail'

/** Ranks of a communicator at equal distances, seen from one of them (`ncclTeam_t`). */
export interface TeamShape {
  /** Number of ranks. */
  readonly size: number
  /** This rank's number in the team. */
  readonly rank: number
  /** Distance between the ranks in the communicator. */
  readonly stride: number
}

/**
 * A team of a communicator, from the view of one of its ranks.
 *
 * @example
 * ```ts
 * const lsa = communicator.team('lsa')
 * const first = lsa.toWorld(0) // rank of the team's first member in the communicator
 * ```
 */
export class Team extends PublicObject implements TeamShape {
  /** Number of ranks. */
  readonly size: number
  /** This rank's number in the team. */
  readonly rank: number
  /** Distance between the ranks in the communicator. */
  readonly stride: number
  readonly #live: LiveCommunicator

  /** @internal */
  constructor(live: LiveCommunicator, shape: TeamShape) {
    requireMade(live?.context, 'Team', 'Communicator.team')
    super()
    const { size, rank, stride } = shape
    this.#live = live
    this.size = size
    this.rank = rank
    this.stride = stride
  }

  /** Returns the communicator rank of rank `rank` of this team (`ncclTeamRankToWorld`, NCCL 2.28). */
  toWorld(rank: number): number {
    const shape = this.#checked(rank, 'Team.toWorld')
    return ncclTeamRankToWorld(this.#live.handle, shape, rank)
  }

  /**
   * Returns the LSA rank of rank `rank` of this team (`ncclTeamRankToLsa`, NCCL 2.28).
   *
   * The result has no meaning for a rank outside the LSA team.
   */
  toLsa(rank: number): number {
    const shape = this.#checked(rank, 'Team.toLsa')
    return ncclTeamRankToLsa(this.#live.handle, shape, rank)
  }

  /** Returns the part of `size` consecutive ranks that contains this rank. `size` divides the team's size. */
  inner(size: number): Team {
    this.#requireDivisor(size, 'Team.inner')
    return new Team(this.#live, { size, rank: this.rank % size, stride: this.stride })
  }

  /**
   * Divides the team into parts of `size` ranks, and returns the ranks with the same position as this rank in each
   * part.
   */
  outer(size: number): Team {
    this.#requireDivisor(size, 'Team.outer')
    return new Team(this.#live, {
      size: this.size / size,
      rank: Math.floor(this.rank / size),
      stride: this.stride * size,
    })
  }

  get [Symbol.toStringTag](): string {
    return 'Team'
  }

  override [inspectKey](): string {
    const { size, rank, stride } = this
    return inspectLine('Team', { size, rank, stride })
  }

  #checked(rank: unknown, api: string): Uint8Array {
    requireAlive(this.#live, api)
    requireIdle(this.#live, api)
    requireInteger(rank, api, 'rank', 0, this.size - 1)
    return teamBytes(this)
  }

  #requireDivisor(size: unknown, api: string): void {
    if (this.size % requireInteger(size, api, 'size', 1, this.size) === 0) return
    throw outOfRange(api, 'size', `a divisor of the ${this.size} ranks of the team`, size)
  }
}

const largestInt = 0x7fff_ffff
const calls = { world: ncclTeamWorld, lsa: ncclTeamLsa, rail: ncclTeamRail } as const

export function team(live: LiveCommunicator, name: TeamName): Team {
  const api = 'Communicator.team'
  const call = requireKeyOf(name, api, 'name', calls)
  requireIdle(live, api)
  const { nRanks, rank, stride } = call(live.handle)
  return new Team(live, { size: nRanks, rank, stride })
}

/** Returns the `ncclTeam_t` of a team, to pass by value. */
export function teamBytes({ size, rank, stride }: TeamShape): Uint8Array {
  const bytes = new Uint8Array(ncclTeamLayout.size)
  const value: ncclTeam = { nRanks: size, rank, stride }
  ncclTeamLayout.write(bytes, value)
  return bytes
}

/** Returns the checked shape of a team. @throws TypeError, RangeError */
export function requireTeam(value: unknown, api: string, name: string): TeamShape {
  if (typeof value !== 'object' || value === null) throw wrongType(api, name, 'a team', value)
  const team = { size: propertyOf(value, 'size'), rank: propertyOf(value, 'rank'), stride: propertyOf(value, 'stride') }
  const size = requireInteger(team.size, api, `${name}.size`, 1, largestInt)
  const rank = requireInteger(team.rank, api, `${name}.rank`, 0, size - 1)
  return { size, rank, stride: requireInteger(team.stride, api, `${name}.stride`, 0, largestInt) }
}
