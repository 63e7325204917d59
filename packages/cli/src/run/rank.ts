import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'

/** How a rank ended. */
export interface RankEnd {
  readonly rank: number
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Why it did not start. */
  readonly error?: Error
}

export function isFailure({ code }: RankEnd): boolean {
  return code !== 0
}

/** As a shell would say it. */
export function statusOf({ code, signal, error }: RankEnd): number {
  if (error !== undefined) return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 127 : 126
  return signal === null ? (code ?? 1) : 128 + constants.signals[signal]
}

export function describeEnd({ code, signal, error }: RankEnd): string {
  if (error !== undefined) return `did not start: ${error.message}`
  return signal === null ? `ended with exit status ${code}` : `was killed by ${signal}`
}

/** Milliseconds for the output of a rank that has ended. */
const outputLimit = 2_000

/** One process of the job, the first of a group of its own. */
export class RankProcess {
  readonly rank: number
  readonly child: ChildProcess
  /** Settles when the process has ended. */
  readonly ended: Promise<RankEnd>
  /** Settles when its output has, too. */
  readonly closed: Promise<void>
  #isRunning = true

  constructor(rank: number, file: string, commandLine: readonly string[], env: NodeJS.ProcessEnv, stdin: boolean) {
    this.rank = rank
    const child = spawn(file, commandLine, {
      env,
      stdio: [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      // Its own group: what it starts can be ended with it, and the keys of a terminal reach it once, through us.
      detached: true,
    })
    this.child = child
    this.ended = new Promise((resolve) => {
      const end = (how: RankEnd): void => {
        if (!this.#isRunning) return
        this.#isRunning = false
        // What the rank has started and left behind has no job to work for.
        this.signalGroup('SIGKILL')
        resolve(how)
      }
      child.once('error', (error) => {
        if (child.pid === undefined) end({ rank, code: null, signal: null, error })
      })
      child.once('exit', (code, signal) => end({ rank, code, signal }))
    })
    this.closed = new Promise((resolve) => {
      child.once('close', () => resolve())
      child.once('error', () => {
        if (child.pid === undefined) resolve()
      })
    })
  }

  get pid(): number | undefined {
    return this.child.pid
  }

  // Node has no streams at all for a process that there were no descriptors for.

  get input(): Writable | undefined {
    return this.child.stdin ?? undefined
  }

  get output(): Readable | undefined {
    return this.child.stdout ?? undefined
  }

  get errors(): Readable | undefined {
    return this.child.stderr ?? undefined
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#isRunning) send(this.pid, signal)
  }

  signalGroup(signal: NodeJS.Signals): void {
    if (this.pid !== undefined) send(-this.pid, signal)
  }

  /** Stops reading the output of something that outlived the rank. */
  closeOutput(): void {
    this.child.stdout?.destroy()
    this.child.stderr?.destroy()
  }
}

/** The process has ended and its output is through; a reader that is slow is waited for. */
export async function settled(
  one: Pick<RankProcess, 'ended' | 'closed' | 'closeOutput'>,
  isBlocked: () => boolean,
): Promise<void> {
  await one.ended
  let isClosed = false
  const closed = one.closed.then(() => {
    isClosed = true
  })
  while (!isClosed) {
    const wasBlocked = isBlocked()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, outputLimit)
    })
    await Promise.race([closed, late])
    clearTimeout(timer)
    // Something that the rank has started, and that is in no group of ours, holds its output open.
    if (!isClosed && !wasBlocked && !isBlocked()) break
  }
  one.closeOutput()
}

function send(target: number | undefined, signal: NodeJS.Signals): void {
  if (target === undefined) return
  try {
    process.kill(target, signal)
  } catch (error) {
    // It has ended between two of our looks at it.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
