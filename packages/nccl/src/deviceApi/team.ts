import {
  type ncclTeam,
  ncclTeam as ncclTeamLayout,
  ncclTeamLsa,
  ncclTeamRail,
  ncclTeamRankToLsa,
  ncclTeamRankToWorld,
  ncclTeamWorld,
} from '@shoal/nccl-sys'
import { describeValue } from '@shoal/types'
import { type LiveCommunicator, requireAlive, requireIdle } from '../lifetime/live.js'

/**
 * The teams that NCCL knows of: all ranks; those that this rank reaches by loads and stores (LSA); those that have its
 * place in the other LSA teams (rail).
 */
export type TeamName = 'world' | 'lsa' | 'rail'

/** Ranks of a communicator at equal distances, seen from one of them (`ncclTeam_t`). */
export interface TeamShape {
  /** Number of ranks. */
  readonly size: number
  /** This rank's place in the team. */
  readonly rank: number
  /** Distance of the ranks in the communicator. */
  readonly stride: number
}

/** A team of a communicator, as one of its ranks sees it. */
export class Team implements TeamShape {
  readonly size: number
  readonly rank: number
  readonly stride: number
  readonly #live: LiveCommunicator

  /** @internal */
  constructor(live: LiveCommunicator, { size, rank, stride }: TeamShape) {
    this.#live = live
    this.size = size
    this.rank = rank
    this.stride = stride
  }

  /** Rank in the communicator of rank `rank` of this team (`ncclTeamRankToWorld`, NCCL 2.28). */
  toWorld(rank: number): number {
    const shape = this.#checked(rank, 'Team.toWorld')
    return ncclTeamRankToWorld(this.#live.handle, shape, rank)
  }

  /** Place in the LSA team of rank `rank` of this team; of no meaning for one outside of it (`ncclTeamRankToLsa`, 2.28). */
  toLsa(rank: number): number {
    const shape = this.#checked(rank, 'Team.toLsa')
    return ncclTeamRankToLsa(this.#live.handle, shape, rank)
  }

  /** The part of this team, `size` ranks in a row, that this rank is in. `size` divides the size of the team. */
  inner(size: number): Team {
    this.#requireDivisor(size, 'Team.inner')
    return new Team(this.#live, { size, rank: this.rank % size, stride: this.stride })
  }

  /** The ranks with this rank's place in the parts of `size` ranks that the team falls into. */
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

  #checked(rank: unknown, api: string): Uint8Array {
    requireAlive(this.#live, api)
    requireIdle(this.#live, api)
    if (typeof rank !== 'number') throw new TypeError(`${api}: rank must be a number`)
    if (Number.isInteger(rank) && rank >= 0 && rank < this.size) return teamBytes(this)
    throw new RangeError(`${api}: rank must be from 0 to ${this.size - 1}, got ${rank}`)
  }

  #requireDivisor(size: unknown, api: string): void {
    if (typeof size !== 'number') throw new TypeError(`${api}: size must be a number`)
    if (Number.isInteger(size) && size > 0 && this.size % size === 0) return
    throw new RangeError(`${api}: size must divide the ${this.size} ranks of the team, got ${size}`)
  }
}

const calls = { world: ncclTeamWorld, lsa: ncclTeamLsa, rail: ncclTeamRail } as const

export function team(live: LiveCommunicator, name: TeamName): Team {
  const api = 'Communicator.team'
  if (typeof name !== 'string' || !Object.hasOwn(calls, name)) {
    throw new TypeError(`${api}: name must be one of ${Object.keys(calls).join(', ')}, got ${describeValue(name)}`)
  }
  requireIdle(live, api)
  const { nRanks, rank, stride } = calls[name](live.handle)
  return new Team(live, { size: nRanks, rank, stride })
}

/** The `ncclTeam_t` of a team, to be passed by value. */
export function teamBytes({ size, rank, stride }: TeamShape): Uint8Array {
  const bytes = new Uint8Array(ncclTeamLayout.size)
  const value: ncclTeam = { nRanks: size, rank, stride }
  ncclTeamLayout.write(bytes, value)
  return bytes
}

/** What a caller names as a team, checked. */
export function checkedTeam(value: unknown, parameter: string, api: string): TeamShape {
  if (typeof value !== 'object' || value === null) throw new TypeError(`${api}: ${parameter} must be a team`)
  const { size, rank, stride } = value as TeamShape
  for (const [name, number] of Object.entries({ size, rank, stride })) {
    if (typeof number !== 'number') throw new TypeError(`${api}: ${parameter}.${name} must be a number`)
    if (!Number.isInteger(number) || number < 0 || number > 0x7fff_ffff) {
      throw new RangeError(`${api}: ${parameter}.${name} must be a whole number from 0, got ${number}`)
    }
  }
  if (rank >= size) throw new RangeError(`${api}: ${parameter}.rank must be below its size ${size}, got ${rank}`)
  return { size, rank, stride }
}
