import { SubjectProcess } from '../subjectProcess.js'
import { MainThread } from './mainThread.js'
import type { Placement } from './placements.js'

/** How one process of a group is started. */
export interface ProcessCommand {
  readonly command: string
  readonly arguments: readonly (string | number)[]
  readonly environment?: Readonly<Record<string, string>>
}

/** Processes that are ranks of one job: all get the same request, and the mean of their answers counts. */
export class ProcessGroup {
  /** What each process said when all were connected. */
  readonly readyLines: readonly string[]
  readonly #processes: readonly SubjectProcess[]
  readonly #mainThreads: readonly MainThread[]

  private constructor(
    processes: readonly SubjectProcess[],
    readyLines: readonly string[],
    mainThreads: readonly MainThread[],
  ) {
    this.#processes = processes
    this.readyLines = readyLines
    this.#mainThreads = mainThreads
  }

  /** What the first process said. */
  get readyLine(): string {
    return this.readyLines[0] ?? ''
  }

  /**
   * Starts the processes, each on its processors, or on any where there are no placements. The first one makes the id
   * by which they connect. Main threads are bound when all are connected: the threads of their libraries exist by then.
   */
  static async start(
    name: string,
    commands: readonly ProcessCommand[],
    placements: readonly Placement[] | undefined,
  ): Promise<ProcessGroup> {
    if (placements !== undefined && placements.length !== commands.length)
      throw new Error(`${name}: ${commands.length} processes, and ${placements.length} placements`)
    const started = await Promise.all(
      commands.map((one, index) => {
        const placement = placements?.[index]
        const [command, words] =
          placement === undefined
            ? [one.command, one.arguments]
            : ['taskset', ['-c', placement.others.join(','), one.command, ...one.arguments]]
        return SubjectProcess.start(`${name} ${index}`, command, words, one.environment ?? {})
      }),
    )
    const id = /^id ([0-9a-f]+)$/.exec(started[0]?.[1] ?? '')?.[1]
    if (id === undefined) throw new Error(`${name} begins with '${started[0]?.[1]}', not with an id`)
    const processes = started.map(([process]) => process)
    const readyLines = await Promise.all(processes.map((process) => process.request(`start ${id}`)))
    const mainThreads = processes.flatMap(({ pid }, index) => {
      const placement = placements?.[index]
      // taskset replaces itself with the program, so its process number is that of the main thread.
      return placement === undefined ? [] : new MainThread(`${name} ${index}`, pid, placement)
    })
    for (const thread of mainThreads) thread.bind()
    return new ProcessGroup(processes, readyLines, mainThreads)
  }

  /** Sends the request to all at once; returns the mean of their answers, as nccl-tests report it. */
  async measure(request: string): Promise<number> {
    const answers = await Promise.all(this.#processes.map((process) => process.measure(request)))
    return answers.reduce((sum, value) => sum + value, 0) / answers.length
  }

  /** Sends the request to the first process alone, while the others wait. */
  measureFirst(request: string): Promise<number> {
    return (this.#processes[0] as SubjectProcess).measure(request)
  }

  /** Sends the line to all at once; returns what each answers. */
  request(line: string): Promise<string[]> {
    return Promise.all(this.#processes.map((process) => process.request(line)))
  }

  suspend(): void {
    for (const process of this.#processes) process.suspend()
  }

  /** Lets all processes go on, after binding their main threads. */
  resume(): void {
    for (const thread of this.#mainThreads) thread.bind()
    for (const process of this.#processes) process.resume()
  }

  /** Kills the processes. */
  close(): void {
    for (const process of this.#processes) process.close()
  }

  /** Ends the processes and waits until they are gone. */
  async end(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.end()))
  }
}
