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

/** Returns the exit status as a shell reports it. */
export function statusOf({ code, signal, error }: RankEnd): number {
  if (error !== undefined) return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 127 : 126
  return signal === null ? (code ?? 1) : 128 + constants.signals[signal]
}

export function describeEnd({ code, signal, error }: RankEnd): string {
  if (error !== undefined) return `did not start: ${error.message}`
  return signal === null ? `ended with exit status ${code}` : `was killed by ${signal}`
}

/** Milliseconds to read the output of a rank that has ended. */
const outputLimit = 2_000

/** One process of the job, which leads a separate process group. */
export class RankProcess {
  readonly rank: number
  readonly child: ChildProcess
  /** Settles when the process has ended. */
  readonly ended: Promise<RankEnd>
  /** Settles when its output has also ended. */
  readonly closed: Promise<void>
  #isRunning = true

  constructor(rank: number, file: string, commandLine: readonly string[], env: NodeJS.ProcessEnv, stdin: boolean) {
    this.rank = rank
    const child = spawn(file, commandLine, {
      env,
      stdio: [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      // A separate group, so that its child processes end with it. Signals of terminal keys reach it only through us.
      detached: true,
    })
    this.child = child
    this.ended = new Promise((resolve) => {
      const end = (how: RankEnd): void => {
        if (!this.#isRunning) return
        this.#isRunning = false
        // Child processes left behind have no job any more.
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

  // If no descriptors were available, Node sets no streams.

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

  /** Stops reading the output of a process that outlived the rank. */
  closeOutput(): void {
    this.child.stdout?.destroy()
    this.child.stderr?.destroy()
  }
}

/** Resolves when the process has ended and its output was read; waits for a slow reader. */
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
    // A child process outside our groups keeps the output open.
    if (!isClosed && !wasBlocked && !isBlocked()) break
  }
  one.closeOutput()
}

function send(target: number | undefined, signal: NodeJS.Signals): void {
  if (target === undefined) return
  try {
    process.kill(target, signal)
  } catch (error) {
    // The process ended between two checks.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
