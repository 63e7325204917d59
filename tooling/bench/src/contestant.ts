import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

// How long a program that was told to end may take, in milliseconds.
const patience = 10_000

/** A program that measures on request: one line in, one line out. It sits idle while others have their turn. */
export class Contestant {
  static readonly #running = new Set<Contestant>()
  readonly #child: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>
  readonly #name: string
  #errors = ''

  private constructor(name: string, child: ChildProcessWithoutNullStreams) {
    this.#name = name
    this.#child = child
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-4000)
    })
    Contestant.#running.add(this)
    // A child that is gone shows as the end of its output; the broken pipe says nothing more.
    child.stdin.on('error', () => undefined)
  }

  /** Starts the program and waits for its first line; gives back that line too. */
  static async start(
    name: string,
    command: string,
    commandArguments: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<[Contestant, string]> {
    const child = spawn(command, commandArguments, { stdio: 'pipe', env: { ...process.env, ...environment } })
    const contestant = new Contestant(name, child)
    const failed = new Promise<never>((_, reject) => {
      child.once('error', (error) => reject(new Error(`${name} does not start: ${error.message}`)))
    })
    const line = await Promise.race([contestant.#line(), failed])
    return [contestant, line]
  }

  get pid(): number {
    // One whose program does not start is never given out.
    return this.#child.pid as number
  }

  /** Sends a request and gives back the figure in the answer. */
  async ask(request: string): Promise<number> {
    const line = await this.tell(request)
    const value = Number(line)
    if (!Number.isFinite(value)) throw new Error(`${this.#name} answers '${request}' with '${line}'`)
    return value
  }

  /** Sends a line and gives back the line that comes in answer. */
  async tell(line: string): Promise<string> {
    this.#child.stdin.write(`${line}\n`)
    return await this.#line()
  }

  /** Stops the program while it waits for its turn: threads of its libraries that poll would take from the others. */
  rest(): void {
    this.#child.kill('SIGSTOP')
  }

  wake(): void {
    this.#child.kill('SIGCONT')
  }

  /** Ends the program. */
  close(): void {
    Contestant.#running.delete(this)
    this.#child.stdin.end()
    this.#child.kill()
    this.wake()
  }

  /** Lets the program end by itself, which it does at the end of its input, and waits until it is gone. */
  async end(): Promise<void> {
    Contestant.#running.delete(this)
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), patience)
    this.wake()
    this.#child.stdin.end()
    await gone
    clearTimeout(timer)
  }

  /** Ends all that run: one that waits for requests would keep a benchmark that failed from ending. */
  static closeAll(): void {
    for (const contestant of Contestant.#running) contestant.close()
  }

  async #line(): Promise<string> {
    const { value, done } = await this.#lines.next()
    if (done !== true) return value
    const code = this.#child.exitCode ?? (await new Promise((resolve) => this.#child.once('close', resolve)))
    throw new Error(`${this.#name} ended (${String(code)}) ${this.#errors.trim()}`.trim())
  }
}
