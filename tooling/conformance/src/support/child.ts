import { type ChildProcess, fork } from 'node:child_process'
import type { CaseContext } from '../suite.js'

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** An error of a command in another process, as data. */
export interface Failure {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly status?: number
  readonly isSticky?: boolean
}

/** Thrown if a command failed in the other process. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError'
  readonly failure: Failure

  constructor(failure: Failure) {
    super(`in the other process: ${failure.name}: ${failure.message}`)
    this.failure = failure
  }
}

type Answer = { readonly value: unknown } | { readonly failure: Failure }

/** A process that runs commands, one at a time. It ends with the case. */
export class Child {
  readonly #process: ChildProcess
  readonly #end: Promise<ProcessEnd>

  private constructor(process: ChildProcess) {
    this.#process = process
    this.#end = new Promise((resolve, reject) => {
      process.once('error', reject)
      // Node emits no 'close' after a disconnect() from this side.
      process.once('exit', (code, signal) => resolve({ code, signal }))
    })
    // A caller that awaits the end gets the error. Without a caller, the error must not be unhandled.
    this.#end.catch(() => undefined)
  }

  /** Starts a script of this package. In the child, an inherited descriptor has number 4. */
  static start(
    t: Pick<CaseContext, 'defer'>,
    script: string,
    options: { readonly descriptor?: number; readonly environment?: Readonly<Record<string, string>> } = {},
  ): Child {
    const { descriptor, environment = {} } = options
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc', ...(descriptor === undefined ? [] : [descriptor])] as const
    const env = { ...process.env, ...environment }
    const child = fork(script, [], { execArgv: [], serialization: 'advanced', stdio: [...stdio], env })
    t.defer(() => void child.kill('SIGKILL'))
    return new Child(child)
  }

  get pid(): number {
    return this.#process.pid as number
  }

  /** Runs a command in the child. Resolves with its result. @throws RemoteError if the command throws */
  async run(command: string, argument?: unknown): Promise<unknown> {
    const answer = new Promise<Answer>((resolve) => this.#process.once('message', (it) => resolve(it as Answer)))
    this.#process.send({ command, argument })
    const first = await Promise.race([answer, this.#end])
    if ('failure' in first) throw new RemoteError(first.failure)
    if ('value' in first) return first.value
    throw new Error(`the process ended during ${command}: code ${first.code}, signal ${first.signal}`)
  }

  /** Kills the process without a warning. */
  async kill(): Promise<ProcessEnd> {
    this.#process.kill('SIGKILL')
    return this.#end
  }

  /** Lets the process end by itself. */
  async leave(): Promise<ProcessEnd> {
    if (this.#process.connected) this.#process.disconnect()
    return this.#end
  }
}

/** The child's side: answers the commands of a {@link Child}. */
export function answerCommands(commands: Readonly<Record<string, (argument: never) => unknown>>): void {
  const answer = async (message: unknown): Promise<Answer> => {
    const { command, argument } = message as { readonly command: string; readonly argument: unknown }
    try {
      const run = commands[command]
      if (run === undefined) throw new Error(`there is no command ${command}`)
      return { value: await run(argument as never) }
    } catch (error) {
      return { failure: failureOf(error) }
    }
  }
  process.on('message', (message) => {
    void answer(message).then((result) => process.send?.(result))
  })
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { name: 'unknown', message: String(error) }
  const { code, status, isSticky } = error as { code?: unknown; status?: unknown; isSticky?: unknown }
  return {
    name: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof status === 'number' ? { status } : {}),
    ...(typeof isSticky === 'boolean' ? { isSticky } : {}),
  }
}
