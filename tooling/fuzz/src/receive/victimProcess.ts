import { type ChildProcess, fork } from 'node:child_process'
import type { Outcome, Question } from './question.js'

/** Milliseconds to wait for an answer. The process itself never waits as long for anything. */
const patience = 120_000

/** The process under test, as the sender sees it. */
export class Victim {
  readonly #child: ChildProcess
  readonly #outcomes: Outcome[] = []
  #end: string | undefined
  #wake: () => void = () => undefined

  constructor() {
    const env = { ...process.env, SHOAL_DEVICE: 'sim' }
    const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const
    this.#child = fork(new URL('victim.js', import.meta.url), { env, execArgv: [], stdio: [...stdio] })
    this.#child.on('message', (outcome: Outcome) => {
      this.#outcomes.push(outcome)
      this.#wake()
    })
    this.#child.on('exit', (code, signal) => {
      this.#end = `the process ended: ${signal ?? code}`
      this.#wake()
    })
  }

  get hasEnded(): boolean {
    return this.#end !== undefined
  }

  async ask(question: Question): Promise<Outcome> {
    if (!this.hasEnded) this.#child.send(question, () => undefined)
    return this.next()
  }

  async next(): Promise<Outcome> {
    const end = performance.now() + patience
    for (;;) {
      const outcome = this.#outcomes.shift()
      if (outcome !== undefined) return outcome
      if (this.#end !== undefined) return { kind: 'wrong', what: this.#end }
      const left = end - performance.now()
      if (left <= 0) return { kind: 'wrong', what: `nothing was heard of it within ${patience} ms` }
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        timer = setTimeout(resolve, left)
      })
      clearTimeout(timer)
    }
  }

  end(): void {
    this.#child.kill('SIGKILL')
  }
}
