import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** Milliseconds that a program has to end before it is killed. */
const endTimeout = 10_000

/** A program that measures on request: it reads a line and answers with a line. */
export class SubjectProcess {
  static readonly #running = new Set<SubjectProcess>()
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
    SubjectProcess.#running.add(this)
    // The end of the output shows that the child has ended, so ignore a broken pipe.
    child.stdin.on('error', () => undefined)
  }

  /** Starts the program and waits for its first line. Returns both. */
  static async start(
    name: string,
    command: string,
    commandArguments: readonly (string | number)[],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<[SubjectProcess, string]> {
    const child = spawn(command, commandArguments.map(String), {
      stdio: 'pipe',
      env: { ...process.env, ...environment },
    })
    const subject = new SubjectProcess(name, child)
    const failed = new Promise<never>((_, reject) => {
      child.once('error', (error) => reject(new Error(`${name} does not start: ${error.message}`)))
    })
    const line = await Promise.race([subject.readLine(), failed])
    return [subject, line]
  }

  get pid(): number {
    // `start` only returns programs that have started.
    return this.#child.pid as number
  }

  /** Sends a request and returns the number in the answer. */
  async measure(request: string): Promise<number> {
    const line = await this.request(request)
    const value = Number(line)
    if (!Number.isFinite(value)) throw new Error(`${this.#name} answers '${request}' with '${line}'`)
    return value
  }

  /** Sends a line and returns the answer. */
  async request(line: string): Promise<string> {
    this.#child.stdin.write(`${line}\n`)
    return await this.readLine()
  }

  /** Reads the next line of its output. */
  async readLine(): Promise<string> {
    const { value, done } = await this.#lines.next()
    if (done !== true) return value
    const code = this.#child.exitCode ?? (await new Promise((resolve) => this.#child.once('close', resolve)))
    throw new Error(`${this.#name} ended (${String(code)}) ${this.#errors.trim()}`.trim())
  }

  /** Stops the program with SIGSTOP, because polling threads of its libraries would slow down the others. */
  suspend(): void {
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    this.#child.kill('SIGCONT')
  }

  /** Kills the program. */
  close(): void {
    SubjectProcess.#running.delete(this)
    this.#child.stdin.end()
    this.#child.kill()
    this.resume()
  }

  /** Closes the program's input, which ends it, and waits for its exit. Returns its exit status. */
  async end(): Promise<number | null> {
    SubjectProcess.#running.delete(this)
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), endTimeout)
    this.resume()
    this.#child.stdin.end()
    await gone
    clearTimeout(timer)
    return this.#child.exitCode
  }

  /** Kills all running programs. A program that waits for requests would keep this process alive. */
  static closeAll(): void {
    for (const subject of SubjectProcess.#running) subject.close()
  }
}
