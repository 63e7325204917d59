/** Runs sequences in separate processes, one for each PE, so that a crash or hang affects nothing else. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { useSoftwareDevice } from '@shoal/ffi'
import { UniqueId } from '@shoal/nvshmem'

/** Task of a process. */
export interface Slice {
  readonly firstSeed: number
  readonly sequences: number
  /** Steps of each sequence. */
  readonly steps: number
  readonly pes: number
  /** True if workers come and go during the sequences. */
  readonly workers: boolean
  readonly pe: number
  /** The id of the NVSHMEM job, in base64. */
  readonly id: string
  /** Steps to make, if only a part of a sequence is repeated. Default: all. */
  readonly only?: readonly number[] | undefined
}

/** A message of a process. */
export type Report =
  | { readonly kind: 'began'; readonly seed: number }
  | { readonly kind: 'ended'; readonly seed: number; readonly steps: number }
  | ({ readonly kind: 'failure' } & Failure)

export interface Failure {
  readonly seed: number
  /** Undefined if the process ended without a report. */
  readonly step: number | undefined
  readonly text: string
  /** The steps before the failure. */
  readonly log: readonly string[]
}

/** How to start processes. */
export interface Launch {
  readonly environment: Readonly<Record<string, string>>
  /** Start of the command line, before Node. */
  readonly prefix: readonly string[]
  readonly signal?: AbortSignal | undefined
}

export type SliceOptions = Omit<Slice, 'pe' | 'id'>

export interface Outcome {
  /** Number of steps that all processes have made together. */
  readonly steps: number
  readonly failure: Failure | undefined
}

/** Milliseconds. A process that sends no message for this time hangs, even on a slow machine. */
const hangAfter = 300_000

export async function runSlice(options: SliceOptions, launch: Launch): Promise<Outcome> {
  useSoftwareDevice()
  const id = UniqueId.create().toString()
  let steps = 0
  let failure: Failure | undefined
  const processes: ChildProcess[] = []
  const found = (what: Failure): void => {
    failure ??= what
    // The other PEs would wait for this PE.
    for (const other of processes) other.kill('SIGKILL')
  }
  const ends: Promise<void>[] = []
  for (let pe = 0; pe < options.pes; pe += 1) {
    const child = start({ ...options, pe, id }, launch)
    processes.push(child)
    ends.push(watch(child, options.firstSeed, (made) => (steps += made), found))
  }
  const stop = (): void => {
    for (const child of processes) child.kill('SIGKILL')
  }
  launch.signal?.addEventListener('abort', stop, { once: true })
  await Promise.all(ends)
  launch.signal?.removeEventListener('abort', stop)
  return { steps, failure }
}

function start(slice: Slice, { environment, prefix }: Launch): ChildProcess {
  const script = fileURLToPath(new URL('child.js', import.meta.url))
  const [command = '', ...rest] = [...prefix, process.execPath, '--expose-gc', script]
  const env = { ...process.env, SHOAL_DEVICE: 'sim', ...environment, SHOAL_FUZZ_SLICE: JSON.stringify(slice) }
  return spawn(command, rest, { env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
}

/** Resolves when the process has ended. */
async function watch(
  child: ChildProcess,
  firstSeed: number,
  onSteps: (steps: number) => void,
  onFailure: (failure: Failure) => void,
): Promise<void> {
  let seed = firstSeed
  let words = ''
  let failure: Failure | undefined
  let timer: NodeJS.Timeout | undefined
  const alive = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      failure = { seed, step: undefined, text: `nothing was heard for ${hangAfter / 1000} s\n${words}`, log: [] }
      child.kill('SIGKILL')
    }, hangAfter)
  }
  alive()
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    // The important part of a sanitizer's report is its start.
    if (words.length < 20_000) words += text
  })
  child.on('message', (report: Report) => {
    alive()
    if (report.kind === 'began') seed = report.seed
    else if (report.kind === 'ended') onSteps(report.steps)
    else failure = { ...report, text: `${report.text}\n${words}` }
  })
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.once('close', (...end) => resolve(end))
    child.once('error', (error) => {
      words += error.message
      resolve([null, null])
    })
  })
  clearTimeout(timer)
  if (failure === undefined && code === 0) return
  const end = signal === null ? `status ${code}` : String(signal)
  onFailure(failure ?? { seed, step: undefined, text: `the process ended with ${end}\n${words}`, log: [] })
}
