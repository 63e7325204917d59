import { Contestant } from '../contestant.js'
import { MainThread } from './mainThread.js'
import type { Place } from './places.js'

/** How one process of a crew is started. */
export interface Member {
  readonly command: string
  readonly arguments: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

/** Processes that work together, as ranks do: each is asked the same, and what counts is the mean of their answers. */
export class Crew {
  /** What each process said when all had met. */
  readonly greetings: readonly string[]
  readonly #members: readonly Contestant[]
  readonly #mainThreads: readonly MainThread[]

  private constructor(
    members: readonly Contestant[],
    greetings: readonly string[],
    mainThreads: readonly MainThread[],
  ) {
    this.#members = members
    this.greetings = greetings
    this.#mainThreads = mainThreads
  }

  /** What the first process said. */
  get greeting(): string {
    return this.greetings[0] ?? ''
  }

  /**
   * Starts the processes, each in its place, or anywhere where there are no places; the first one makes the id by which
   * they meet. Main threads go to their fronts when all have met: the threads of their libraries then exist elsewhere.
   */
  static async start(name: string, members: readonly Member[], places: readonly Place[] | undefined): Promise<Crew> {
    if (places !== undefined && places.length !== members.length)
      throw new Error(`${name}: ${members.length} processes, and ${places.length} places`)
    const started = await Promise.all(
      members.map((one, index) => {
        const place = places?.[index]
        const [command, words] =
          place === undefined
            ? [one.command, one.arguments]
            : ['taskset', ['-c', place.rest.join(','), one.command, ...one.arguments]]
        return Contestant.start(`${name} ${index}`, command, words, one.environment ?? {})
      }),
    )
    const id = /^id ([0-9a-f]+)$/.exec(started[0]?.[1] ?? '')?.[1]
    if (id === undefined) throw new Error(`${name} begins with '${started[0]?.[1]}', not with an id`)
    const contestants = started.map(([contestant]) => contestant)
    const greetings = await Promise.all(contestants.map((contestant) => contestant.tell(`start ${id}`)))
    const mainThreads = contestants.flatMap(({ pid }, index) => {
      const place = places?.[index]
      // taskset becomes the program, so the number is that of its main thread.
      return place === undefined ? [] : new MainThread(`${name} ${index}`, pid, place)
    })
    for (const thread of mainThreads) thread.settle()
    return new Crew(contestants, greetings, mainThreads)
  }

  /** Sends the request to all at once; the mean of their answers, as nccl-tests report it. */
  async ask(request: string): Promise<number> {
    const answers = await Promise.all(this.#members.map((member) => member.ask(request)))
    return answers.reduce((sum, value) => sum + value, 0) / answers.length
  }

  /** Sends the request to the first process alone, while the others wait. */
  askFirst(request: string): Promise<number> {
    return (this.#members[0] as Contestant).ask(request)
  }

  /** Sends the line to all at once; what each answers. */
  tell(line: string): Promise<string[]> {
    return Promise.all(this.#members.map((member) => member.tell(line)))
  }

  /** Stops all while others have their turn. */
  rest(): void {
    for (const member of this.#members) member.rest()
  }

  /** Lets all go on, with every main thread where it belongs. */
  wake(): void {
    for (const thread of this.#mainThreads) thread.settle()
    for (const member of this.#members) member.wake()
  }

  close(): void {
    for (const member of this.#members) member.close()
  }

  /** Ends the processes and waits until they are gone, so that nothing of them disturbs what comes next. */
  async end(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.end()))
  }
}

/** Crews of which one runs at a time: threads of NCCL and NVSHMEM poll also where there is nothing to do. */
export class Stage {
  #awake: Crew | undefined

  /** It is this one's turn. */
  enter(crew: Crew): void {
    if (this.#awake === crew) return
    this.#awake?.rest()
    crew.wake()
    this.#awake = crew
  }

  /** Nobody's turn. */
  clear(): void {
    this.#awake?.rest()
    this.#awake = undefined
  }

  /** It waits for its turn, or has been ended. */
  leave(crew: Crew): void {
    if (this.#awake === crew) this.#awake = undefined
    crew.rest()
  }
}
