import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nvrtc } from '@shoal/nvrtc-sys'
import type { Answer, Callable } from './contract.js'
import { callablesOf } from './signatures.js'
import { sweptPackages } from './subjects/index.js'

/** Result of the sweep. */
export interface ArgumentSweepResult {
  /** Number of calls. Each had one wrong argument. */
  readonly asked: number
  /** Number of refused calls. */
  readonly refused: number
  /** Number of calls refused with a `TypeError` or `RangeError` of Shoal, or an error of `@shoal/types`. */
  readonly typed: number
  /** Number of calls refused with a message that names function and parameter. */
  readonly named: number
  /** Calls that accepted a senseless argument. */
  readonly accepted: string[]
  /** Errors that are not Shoal's, crashes, and functions that the sweep could not call. */
  readonly failures: string[]
  /** Refused calls whose message does not name both function and parameter. */
  readonly unnamed: string[]
}

export interface ArgumentSweepOptions {
  /** Default: all safe packages. */
  readonly packages?: string[]
}

/**
 * Calls every function of the safe packages with every kind of wrong argument, one parameter at a time, on the software
 * device. The other arguments are right. Each package gets its own process. If a process ends early, its last question
 * counts as a failure.
 */
export async function runArgumentSweep(options: ArgumentSweepOptions): Promise<ArgumentSweepResult> {
  const packages = options.packages ?? sweptPackages
  const folder = mkdtempSync(join(tmpdir(), 'shoal-arguments-'))
  try {
    const callables = callablesOf(Object.fromEntries(packages.map((name) => [name, declarationsOf(name)])))
    const total = { asked: 0, refused: 0, typed: 0, named: 0, accepted: [], failures: [], unnamed: [] } as Mutable
    for (const name of packages) await sweepPackage(name, callables[name] ?? [], folder, total)
    return total
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

type Mutable = { -readonly [K in keyof ArgumentSweepResult]: ArgumentSweepResult[K] }

/** Returns the declaration file of an entry point, such as `driver` or `driver/graph`. */
export function declarationsOf(entryName: string): string {
  const [name, ...entry] = entryName.split('/')
  const folder = fileURLToPath(new URL(`../../../../packages/${name}/`, import.meta.url))
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly exports: { readonly [path: string]: { readonly types: string } }
  }
  return join(folder, exports[['.', ...entry].join('/')]?.types ?? '')
}

async function sweepPackage(
  name: string,
  callables: readonly Callable[],
  folder: string,
  total: Mutable,
): Promise<void> {
  const [file, answers] = ['json', 'answers'].map((end) => join(folder, `${name.replace('/', '-')}.${end}`)) as [
    string,
    string,
  ]
  writeFileSync(file, JSON.stringify(callables))
  // The child writes to a file, because reading so many answers from a pipe would take longer than most questions.
  const descriptor = openSync(answers, 'w')
  const child = spawn(process.execPath, [fileURLToPath(new URL('child.js', import.meta.url)), name, file], {
    // Some questions make the child write files.
    cwd: folder,
    env: {
      ...process.env,
      SHOAL_DEVICE: 'sim',
      SHOAL_SIM_DEVICES: '2',
      SHOAL_CACHE_FOLDER: join(folder, 'cache'),
      // If NVRTC is missing, this path stops the child from searching for it at each question.
      ...(nvrtc.locate() === undefined ? { SHOAL_NVRTC_LIBRARY: join(folder, 'none') } : {}),
    },
    stdio: ['ignore', 'ignore', 'pipe', descriptor],
  })
  closeSync(descriptor)
  let said = ''
  child.stderr?.on('data', (data: Buffer) => {
    said = (said + data.toString()).slice(-2000)
  })
  let question = 'its start'
  let isOver = false
  const take = (answer: Answer): void => {
    if (answer.kind === 'asking') {
      question = answer.question
      total.asked += 1
    } else if (answer.kind === 'refused') {
      total.refused += 1
      if (answer.typed) total.typed += 1
      else total.failures.push(`${name}: ${answer.question}: ${answer.message}`)
      if (answer.named) total.named += 1
      else if (answer.typed) total.unnamed.push(`${name}: ${answer.question}: ${answer.message}`)
    } else if (answer.kind === 'accepted') {
      if (answer.nonsense) total.accepted.push(`${name}: ${answer.question}`)
    } else if (answer.kind === 'unasked') {
      total.failures.push(`${name}: ${answer.api} could not be asked: ${answer.reason}`)
    } else {
      isOver = true
    }
  }
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  for (const line of readFileSync(answers, 'utf8').trimEnd().split('\n'))
    if (line !== '') take(JSON.parse(line) as Answer)
  if (!isOver || code !== 0) total.failures.push(`${name}: ended with ${signal ?? code} at ${question}: ${said.trim()}`)
}
