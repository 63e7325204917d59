/** Sequences in processes of their own, as many as there are PEs: what crashes or hangs takes nothing else with it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { useSoftwareDevice } from '@shoal/ffi'
import { UniqueId } from '@shoal/nvshmem'

/** What a process is to do. */
export interface Slice {
  readonly firstSeed: number
  readonly sequences: number
  /** Of each sequence. */
  readonly steps: number
  readonly pes: number
  /** Whether workers come and go beside the sequences. */
  readonly workers: boolean
  readonly pe: number
  /** The id of the NVSHMEM job, in base64. */
  readonly id: string
  /** The steps that are made, of a sequence that is replayed in part. Default: all. */
  readonly only?: readonly number[] | undefined
}

/** What a process tells. */
export type Report =
  | { readonly kind: 'began'; readonly seed: number }
  | { readonly kind: 'ended'; readonly seed: number; readonly steps: number }
  | ({ readonly kind: 'failure' } & Failure)

export interface Failure {
  readonly seed: number
  /** Undefined where the process ended without a word. */
  readonly step: number | undefined
  readonly text: string
  /** What was done before. */
  readonly log: readonly string[]
}

/** How processes are started. */
export interface Launch {
  readonly environment: Readonly<Record<string, string>>
  /** What the command line begins with, before Node. */
  readonly prefix: readonly string[]
  readonly signal?: AbortSignal | undefined
}

export type SliceOptions = Omit<Slice, 'pe' | 'id'>

export interface Outcome {
  /** Made by all processes together. */
  readonly steps: number
  readonly failure: Failure | undefined
}

/** A process that says nothing for so long hangs, however slow the machine may be. */
const hangAfter = 300_000

export async function runSlice(options: SliceOptions, launch: Launch): Promise<Outcome> {
  useSoftwareDevice()
  const id = UniqueId.create().toString()
  let steps = 0
  let failure: Failure | undefined
  const processes: ChildProcess[] = []
  const found = (what: Failure): void => {
    failure ??= what
    // The other PEs wait for this one.
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

/** Settles when the process has ended. */
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
    // A report of a sanitizer begins with what matters.
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
