import { hashOf, type Introducing, type Introduction, type Refusal } from './handshake.js'
import type { RendezvousState } from './state.js'

/** The rank that started this rendezvous, which identifies the job. */
export type ServedJob = Pick<Introducing, 'instance' | 'job' | 'place' | 'launch' | 'localWorldSize' | 'pid'>

/** Why a connection is refused: for the log of the server, and for the client. */
export interface Denial {
  readonly reason: string
  readonly refusal?: Refusal
  readonly words?: string
}

interface Guest {
  readonly said: Pick<Introduction, 'rank' | 'place' | 'launch' | 'localWorldSize' | 'pid'>
  readonly from: string
}

/**
 * Decides which connections are ranks of the job.
 *
 * The secret alone does not distinguish jobs, because users export one secret for all jobs. So each rank sends its
 * job's name, its machine and its launcher's process.
 */
export class Admission {
  readonly #state: RendezvousState
  readonly #job: ServedJob | undefined
  readonly #hash: string
  readonly #guests = new Map<number, Guest>()

  constructor(state: RendezvousState, job: ServedJob | undefined) {
    this.#state = state
    this.#job = job
    this.#hash = hashOf(job?.job ?? '')
    if (job === undefined) return
    // Set before rank 0 connects: a faster rank of another job would otherwise be accepted.
    const said = { ...job, rank: 0, place: hashOf(job.place), launch: hashOf(job.launch) }
    this.#guests.set(0, { said, from: 'on the machine of the rendezvous' })
  }

  /** Admits a rank, or returns why not. `from` describes the origin of its connection. */
  admit(said: Introduction, from: string): Denial | undefined {
    const denial = this.#denialOf(said, from)
    if (denial === undefined && said.role === 'rank') this.#guests.set(said.rank, { said, from })
    return denial
  }

  #denialOf(said: Introduction, from: string): Denial | undefined {
    const { rank, worldSize } = said
    if (!said.isProven) return { reason: 'it does not know the secret of the job', refusal: 'secret' }
    if (this.#job !== undefined && said.job !== this.#hash) return deny('job', 'it belongs to another job', this.#words)
    if (worldSize !== this.#state.worldSize) {
      const counts = `${worldSize} ranks, and this one has ${this.#state.worldSize}`
      return deny('worldSize', `it belongs to a job of ${counts}`, this.#words)
    }
    if (rank >= worldSize) return deny('rank', `it says it is rank ${rank} of ${worldSize}`, this.#words)
    const presence = this.#state.presenceOf(rank)
    if (said.role === 'watch') {
      return presence === 'joined' ? undefined : deny('gone', `rank ${rank}, for which it watches, is not here`, '')
    }
    if (presence === 'joined' || this.#isImpostor(said)) return this.#denyTwin(said, from)
    if (presence !== 'absent') return deny('gone', `rank ${rank} has been here and is gone`, this.#words)
    return rank === 0 ? undefined : this.#denialOfPlace(said)
  }

  /** True for another start of the same job, which found the address in use and asks for its owner. */
  #isImpostor({ rank, instance }: Introduction): boolean {
    return this.#job !== undefined && rank === 0 && instance !== this.#job.instance
  }

  /** Refuses a duplicate rank. While ranks are missing, it may belong to a second job that is starting here. */
  #denyTwin(said: Introduction, from: string): Denial {
    const { rank } = said
    const first = this.#guests.get(rank)
    const where = first === undefined ? '' : `: process ${first.said.pid} ${first.from}`
    const words = `rank ${rank} is there already${where}${this.#words === '' ? '' : `; the job there: ${this.#words}`}`
    if (this.#job !== undefined && !this.#state.isComplete) {
      this.#state.contest(
        `rank ${rank} came twice: process ${first?.said.pid ?? 'unknown'} ${first?.from ?? ''} and process ${said.pid} ${from}. ` +
          'Two jobs that cannot be told apart start here at once: give each a SHOAL_JOB_ID of its own, on all of its ranks',
      )
      return deny('starting', `rank ${rank} came twice`, words)
    }
    return deny('taken', `rank ${rank} is here already`, words)
  }

  /** Checks the launcher process and the number of ranks per machine. */
  #denialOfPlace({ rank, place, launch, localWorldSize, pid }: Introduction): Denial | undefined {
    if (this.#job === undefined || place === '') return undefined
    const others = [...this.#guests.values()].filter(({ said }) => said.place === place)
    const other = others.find(({ said }) => said.launch !== launch)
    if (other !== undefined) {
      const words = `rank ${other.said.rank} of that job (process ${other.said.pid}) is on the same machine, and another process has started it`
      return this.#refusePlace(rank, pid, 'launch', words)
    }
    const limits = [localWorldSize, ...others.map(({ said }) => said.localWorldSize)].filter((count) => count > 0)
    const limit = Math.min(...limits)
    if (others.length < limit) return undefined
    const there = others.map(({ said }) => said.rank).sort((a, b) => a - b)
    const words = `LOCAL_WORLD_SIZE says that its machine has ${limit} of the ranks, and rank ${there.join(', ')} of that job is there`
    return this.#refusePlace(rank, pid, 'crowded', words)
  }

  #refusePlace(rank: number, pid: number, refusal: Refusal, words: string): Denial {
    this.#state.turnedAway(rank, `process ${pid} said that it is rank ${rank} and was refused: ${words}`)
    return deny(refusal, `rank ${rank}, process ${pid}: ${words}`, words)
  }

  get #words(): string {
    return this.#job?.job ?? ''
  }
}

function deny(refusal: Refusal, reason: string, words: string): Denial {
  return { reason, refusal, words }
}
