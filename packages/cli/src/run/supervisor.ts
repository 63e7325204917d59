import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatAddress, RendezvousServer } from '@shoal/launch/server'
import { jobMarker, type RendezvousInfo, rankEnvironment } from './environment.js'
import { Guard } from './guard.js'
import { watchHangUp } from './hangUp.js'
import type { RunOptions } from './options.js'
import { LineSink } from './output.js'
import { prefixOf } from './prefix.js'
import type { Program } from './program.js'
import { describeEnd, isFailure, type RankEnd, RankProcess, settled, statusOf } from './rank.js'

/** Signals that request the end of the job; the ranks get the same signal. */
const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
/** Signals whose meaning the program defines. */
const passedSignals = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const

/** Starts the ranks, serves their rendezvous, and waits until the last rank has ended. */
export class Supervisor {
  readonly #options: RunOptions
  readonly #program: Program
  readonly #ranks: RankProcess[] = []
  readonly #ends: RankEnd[] = []
  #server: RendezvousServer | undefined
  #guard: Guard | undefined
  readonly #finished = new AbortController()
  /** The exit status, if something other than the ranks' exit decided it. */
  #status: number | undefined
  #isStopping = false
  #killTimer: NodeJS.Timeout | undefined
  #rejected = 0

  constructor(options: RunOptions, program: Program) {
    this.#options = options
    this.#program = program
  }

  /** Runs the job and returns the exit status. */
  async run(): Promise<number> {
    const { ranks } = this.#options
    const secret = randomBytes(32).toString('hex')
    const server = await RendezvousServer.listen({
      worldSize: ranks,
      secret: Buffer.from(secret),
      onRejected: (reason) => this.#reportRejected(reason),
      onLost: (rank) => void this.#reportQuiet(rank),
    })
    this.#server = server
    const removeListeners = this.#listen()
    // The name is unguessable, so no other user can have created the file.
    const nvshmemId = join(tmpdir(), `shoal-nvshmem-${randomBytes(16).toString('hex')}`)
    try {
      const rendezvous = { address: formatAddress(server.address), secret, nvshmemId, freePort: await freePort() }
      await this.#startAll(rendezvous)
      return this.#exitStatus()
    } finally {
      this.#killAll()
      removeListeners()
      this.#finished.abort()
      clearTimeout(this.#killTimer)
      this.#guard?.close()
      server.dispose()
      rmSync(nvshmemId, { force: true })
    }
  }

  async #startAll(rendezvous: RendezvousInfo): Promise<void> {
    const { ranks, deviceMap, prefix, stdin } = this.#options
    // All environments before the first process, because one may be refused.
    const environments = Array.from({ length: ranks }, (_, rank) =>
      rankEnvironment(rank, ranks, deviceMap, rendezvous, process.env),
    )
    const onBroken = ({ code, message }: NodeJS.ErrnoException): void => {
      if (code === 'EPIPE') this.#stop('nobody reads the output any more', 'SIGTERM', 128 + constants.signals.SIGPIPE)
      else this.#stop(`the output cannot be written: ${message}`, 'SIGTERM', 1)
    }
    const output = new LineSink(process.stdout, onBroken)
    const errors = new LineSink(process.stderr, onBroken)
    const onHangUp = (): void => onBroken({ code: 'EPIPE', name: '', message: '' })
    // Without an addon, the next write reports it.
    watchHangUp(process.stdout.fd, this.#finished.signal, onHangUp).catch(() => undefined)
    const onFailure = (reason: string): void => tell(`no guard against a killed shoal run: ${reason}`)
    const guard = new Guard(jobMarker(rendezvous), onFailure)
    this.#guard = guard
    for (const [rank, environment] of environments.entries()) {
      // A signal may arrive between two ranks.
      if (this.#isStopping) break
      const reads = stdin && rank === 0
      const one = new RankProcess(rank, this.#program.file, this.#program.argumentsOf(rank), environment, reads)
      this.#ranks.push(one)
      if (one.pid !== undefined) guard.add(one.pid)
      const { input, output: lines, errors: errorLines } = one
      if (lines !== undefined) output.take(lines, prefix ? prefixOf(rank, ranks, process.stdout) : '')
      if (errorLines !== undefined) errors.take(errorLines, prefix ? prefixOf(rank, ranks, process.stderr) : '')
      if (input !== undefined) {
        input.on('error', () => undefined) // the rank may stop reading
        process.stdin.pipe(input)
      }
      void one.ended.then((end) => this.#ended(one, end))
    }
    guard.allStarted()
    await Promise.all(this.#ranks.map((one) => settled(one, () => output.isBlocked || errors.isBlocked)))
    if (stdin) {
      process.stdin.unpipe()
      process.stdin.pause()
    }
  }

  #ended(one: RankProcess, end: RankEnd): void {
    this.#ends.push(end)
    if (one.pid !== undefined) this.#guard?.remove(one.pid)
    this.#server?.gone(one.rank, isFailure(end) ? 'lost' : 'left')
    if (!isFailure(end) || this.#isStopping) return
    const who = `rank ${one.rank}${one.pid === undefined ? '' : ` (pid ${one.pid})`}`
    const others = this.#ranks.filter((other) => other.isRunning).length
    if (this.#options.onFailure === 'continue') {
      tell(`${who} ${describeEnd(end)}; ${others === 0 ? 'it was the last' : 'the others go on'}`)
      return
    }
    this.#stop(`${who} ${describeEnd(end)}`, 'SIGTERM', statusOf(end))
  }

  /** Ends all running ranks: by the signal, and by SIGKILL after the grace period. */
  #stop(reason: string, signal: NodeJS.Signals, status: number): void {
    if (this.#isStopping) return
    this.#isStopping = true
    this.#status = status
    const running = this.#ranks.filter((one) => one.isRunning)
    const whom = reason.startsWith('rank') ? 'the others' : 'the ranks'
    tell(`${reason}${running.length === 0 ? '' : `; ${whom} are being ended`}`)
    for (const one of running) {
      one.signalGroup(signal)
      // A stopped rank would not receive the signal within the grace period.
      one.signalGroup('SIGCONT')
    }
    const { grace } = this.#options
    this.#killTimer = setTimeout(() => {
      const left = this.#ranks.filter((one) => one.isRunning).map((one) => one.rank)
      if (left.length > 0) tell(`${nameRanks(left)} did not end within ${grace / 1000} s, killed`)
      this.#killAll()
    }, grace)
  }

  #killAll(): void {
    for (const one of this.#ranks) if (one.isRunning) one.signalGroup('SIGKILL')
  }

  /** Forwards signals; returns a function that undoes this. */
  #listen(): () => void {
    const listeners: [NodeJS.Signals, () => void][] = []
    const on = (signal: NodeJS.Signals, listener: () => void): void => {
      process.on(signal, listener)
      listeners.push([signal, listener])
    }
    for (const signal of endingSignals) {
      on(signal, () => {
        // A second signal kills them immediately.
        if (this.#isStopping) this.#killAll()
        else this.#stop(`got ${signal}`, signal, 128 + constants.signals[signal])
      })
    }
    for (const signal of passedSignals) on(signal, () => this.#ranks.forEach((one) => void one.signal(signal)))
    on('SIGTSTP', () => {
      for (const one of this.#ranks) if (one.isRunning) one.signalGroup('SIGSTOP')
      process.kill(process.pid, 'SIGSTOP')
    })
    on('SIGCONT', () => {
      for (const one of this.#ranks) if (one.isRunning) one.signalGroup('SIGCONT')
    })
    const onExit = (): void => this.#killAll()
    process.on('exit', onExit)
    return () => {
      for (const [signal, listener] of listeners) process.off(signal, listener)
      process.off('exit', onExit)
    }
  }

  /** Reports a rank that ended successfully without leaving. Failed ranks are reported when they end. */
  async #reportQuiet(rank: number): Promise<void> {
    // Checked immediately: the other ranks may end as soon as they detect the loss.
    const isAwaited = this.#ranks.some((one) => one.rank !== rank && one.isRunning)
    const end = await this.#ranks[rank]?.ended
    if (end === undefined || isFailure(end) || !isAwaited) return
    tell(`rank ${rank} ended with exit status 0 without leaving the job; the others count it as lost`)
  }

  #exitStatus(): number {
    if (this.#status !== undefined) return this.#status
    const failures = this.#ends.filter(isFailure)
    const first = failures[0]
    if (first === undefined) return 0
    return failures.length < this.#ends.length ? 0 : statusOf(first)
  }

  /** Reports only the first three rejections. */
  #reportRejected(reason: string): void {
    this.#rejected += 1
    if (this.#rejected <= 3) tell(`the rendezvous rejected a connection: ${reason}`)
    if (this.#rejected === 3) tell('further connections are rejected silently')
  }
}

function nameRanks(ranks: readonly number[]): string {
  return `rank${ranks.length === 1 ? '' : 's'} ${ranks.join(', ')}`
}

function tell(words: string): void {
  process.stderr.write(`shoal run: ${words}\n`)
}

/** Returns a port that nobody listens on at the moment. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
