import { SubjectProcess } from '../subjectProcess.js'
import { MainThread } from './mainThread.js'
import type { Placement } from './placements.js'

/** The command to start one process of a group. */
export interface ProcessCommand {
  readonly command: string
  readonly arguments: readonly (string | number)[]
  readonly environment?: Readonly<Record<string, string>>
}

/** The processes of one job, one per rank. All get the same request, and the result is the mean of their answers. */
export class ProcessGroup {
  /** The lines that the processes printed when all were connected. */
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

  /** The line of the first process. */
  get readyLine(): string {
    return this.readyLines[0] ?? ''
  }

  /**
   * Starts the processes on their placements, or on any processors if there are no placements. The first process
   * creates the id for connecting. Main threads are bound after all processes are connected, because the libraries'
   * threads exist then.
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
      // taskset replaces itself with the program, so its process id is also the main thread's.
      return placement === undefined ? [] : new MainThread(`${name} ${index}`, pid, placement)
    })
    for (const thread of mainThreads) thread.bind()
    return new ProcessGroup(processes, readyLines, mainThreads)
  }

  /** Sends the request to all processes at once. Returns the mean of their answers, as nccl-tests does. */
  async measure(request: string): Promise<number> {
    const answers = await Promise.all(this.#processes.map((process) => process.measure(request)))
    return answers.reduce((sum, value) => sum + value, 0) / answers.length
  }

  /** Sends the request only to the first process; the others wait. */
  measureFirst(request: string): Promise<number> {
    return (this.#processes[0] as SubjectProcess).measure(request)
  }

  /** Sends the line to all processes at once. Returns their answers. */
  request(line: string): Promise<string[]> {
    return Promise.all(this.#processes.map((process) => process.request(line)))
  }

  suspend(): void {
    for (const process of this.#processes) process.suspend()
  }

  /** Binds the main threads and resumes all processes. */
  resume(): void {
    for (const thread of this.#mainThreads) thread.bind()
    for (const process of this.#processes) process.resume()
  }

  /** Kills the processes. */
  close(): void {
    for (const process of this.#processes) process.close()
  }

  /** Ends the processes and waits until they have exited. */
  async end(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.end()))
  }
}
