import { hashOf, type Introducing, type Introduction, type Refusal } from './handshake.js'
import type { RendezvousState } from './state.js'

/** The rank that has started this rendezvous, and so the job that it is for. */
export type ServedJob = Pick<Introducing, 'instance' | 'job' | 'place' | 'launch' | 'localWorldSize' | 'pid'>

/** Why a connection is not let in: for the log of the server, and for the client. */
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
 * Decides who is let in as a rank. The secret alone does not tell jobs apart: users export one for all of theirs. So a
 * rank says what names its job, and where it and its launcher's process are.
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
    // Known before it connects: another job's rank may be faster, and would be taken for one of this job.
    const said = { ...job, rank: 0, place: hashOf(job.place), launch: hashOf(job.launch) }
    this.#guests.set(0, { said, from: 'on the machine of the rendezvous' })
  }

  /** Lets a rank in, or says why not. `from` is where its connection comes from, in words. */
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

  /** Another start of the same job found the port or the socket in use, and asks for whom. */
  #isImpostor({ rank, instance }: Introduction): boolean {
    return this.#job !== undefined && rank === 0 && instance !== this.#job.instance
  }

  /**
   * A number that comes twice while ranks are still missing: two jobs are starting here, and nobody knows who is whose.
   */
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

  /** Ranks of one machine have one launcher there, and are no more than it says. */
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
