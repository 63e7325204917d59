import { type ChildProcess, fork } from 'node:child_process'
import { rankVariable, type ToParent, type ToRank } from './messages.js'
import type { Options } from './options.js'
import type { DeviceReport, RunReport } from './report.js'

/** Milliseconds in which all ranks have to be through. */
const limit = 180_000

type Done = Extract<ToParent, { kind: 'done' }>

/** One process a rank. The first that fails ends all of them; when this returns or throws, none is left. */
export async function runRanks(
  ranks: number,
  main: string,
  commandLine: readonly string[],
  options: Options,
): Promise<RunReport> {
  const children = Array.from({ length: ranks }, (_, rank) =>
    fork(main, [...commandLine, '--seed', String(options.seed)], {
      env: { ...process.env, [rankVariable]: `${rank}/${ranks}` },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    }),
  )
  const endAll = (): void => {
    for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  }
  const onSignal = (signal: NodeJS.Signals): void => {
    endAll()
    process.kill(process.pid, signal)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.once(signal, onSignal)
  process.once('exit', endAll)
  const ends = children.map((child) => new Promise<void>((resolve) => child.once('close', () => resolve())))
  try {
    const done = await withPatience(Promise.all(children.map((child, rank) => outcome(child, rank, children))))
    await Promise.all(ends)
    return reportOf(done, ranks, options)
  } finally {
    endAll()
    await Promise.all(ends)
    for (const signal of signals) process.removeListener(signal, onSignal)
    process.removeListener('exit', endAll)
  }
}

/** Settles when a rank is through: with its report, or with an error that names the rank. */
function outcome(child: ChildProcess, rank: number, children: readonly ChildProcess[]): Promise<Done> {
  return new Promise((resolve, reject) => {
    let done: Done | undefined
    child.on('message', (received) => {
      const message = received as ToParent
      if (message.kind === 'id') {
        const forward: ToRank = { kind: 'id', id: message.id }
        for (const other of children) {
          // The outcome of a rank reports that it has ended; an error here would repeat it.
          if (other !== child && other.connected) other.send(forward, () => undefined)
        }
      } else if (message.kind === 'failed') {
        reject(new Error(`rank ${rank} failed: ${message.message}`))
      } else {
        done = message
      }
    })
    child.once('error', (error) => reject(new Error(`rank ${rank} did not start: ${error.message}`)))
    child.once('close', (code, signal) => {
      if (done !== undefined && code === 0) resolve(done)
      else reject(new Error(`rank ${rank} ended early (${signal ?? `exit status ${code}`})`))
    })
  })
}

function withPatience<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the ranks were not through after ${limit / 1000} s`)), limit)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

function reportOf(done: readonly Done[], ranks: number, options: Options): RunReport {
  const devices: DeviceReport[] = done.map((one) => one.report)
  return {
    processes: ranks,
    elements: options.elements,
    iterations: options.iterations,
    seed: options.seed,
    seconds: Math.max(...done.map((one) => one.seconds)),
    ncclVersion: done[0]?.ncclVersion ?? 'unknown',
    devices,
  }
}
