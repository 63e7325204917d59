import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { leftovers } from './leftovers.js'
import { isSilent, type Line, type Plan, type Task } from './plan.js'

// The built program, also if a test runs this file from source.
const program = fileURLToPath(new URL('../../dist/ranks/rankProgram.js', import.meta.url))
const shoal = fileURLToPath(new URL('../../../../packages/cli/bin/shoal.js', import.meta.url))
/** Milliseconds. A case that takes this much longer than its limit hangs. */
const longest = 60_000

/** A running case. */
class Case {
  readonly lines: Line[] = []
  readonly errors: string[] = []
  readonly ends: (number | null)[] = []
  readonly #children: ChildProcess[] = []
  readonly #plan: Plan

  constructor(plan: Plan) {
    this.#plan = plan
  }

  start(commandLine: readonly string[], env: NodeJS.ProcessEnv): void {
    const child = spawn(process.execPath, commandLine, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#children.push(child)
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{"rank"')) this.lines.push(JSON.parse(line) as Line)
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => this.errors.push(text))
    child.once('close', (code) => this.ends.push(code))
  }

  get pids(): number[] {
    return this.lines.flatMap(({ pid }) => pid ?? [])
  }

  get endedPid(): number | undefined {
    return this.lines.find(({ rank, pid }) => rank === this.#plan.endedRank && pid !== undefined)?.pid
  }

  get faultAt(): number | undefined {
    return this.lines.find(({ faultAt }) => faultAt !== undefined)?.faultAt
  }

  /** The report of each other rank. */
  get reports(): Line[] {
    return this.lines.filter(({ at, unexpected }) => at !== undefined || unexpected !== undefined)
  }

  get isOver(): boolean {
    return this.ends.length === this.#children.length
  }

  async until(holds: () => boolean): Promise<boolean> {
    const end = performance.now() + this.#plan.limit + longest
    while (!holds() && performance.now() < end) await sleep(20)
    return holds()
  }

  killAll(): void {
    for (const child of this.#children) child.kill('SIGKILL')
    for (const pid of this.pids) kill(pid)
  }
}

function kill(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

function variables(plan: Plan, rank: number): NodeJS.ProcessEnv {
  const { seed, worldSize } = plan
  return {
    SLURM_JOB_ID: String(seed),
    SLURM_STEP_ID: '0',
    SLURM_PROCID: String(rank),
    SLURM_LOCALID: String(rank),
    SLURM_NODEID: '0',
    SLURM_STEP_NUM_TASKS: String(worldSize),
    SLURM_STEP_NUM_NODES: '1',
    SLURM_STEP_TASKS_PER_NODE: String(worldSize),
    SLURM_STEP_NODELIST: 'here',
  }
}

function startAll(one: Case, plan: Plan, folder: string, marker: string): Task {
  const { worldSize, launcher } = plan
  const task: Task = { ...plan, done: join(folder, 'done'), socket: marker }
  const files = join(folder, 'tmp')
  mkdirSync(files)
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(SHOAL_|SLURM_|PMI_|OMPI_|RANK$|WORLD_SIZE$)/.test(name),
  )
  const env = {
    ...Object.fromEntries(inherited),
    SHOAL_DEVICE: 'sim',
    SHOAL_SIM_DEVICES: String(worldSize),
    SHOAL_CASE: marker,
    TMPDIR: files,
    XDG_RUNTIME_DIR: files,
  }
  const words = [program, JSON.stringify(task)]
  if (launcher === 'foreign') {
    for (let rank = 0; rank < worldSize; rank += 1) one.start(words, { ...env, ...variables(plan, rank) })
  } else {
    const options = ['-n', String(worldSize), '--no-prefix', '--grace', '5', '--on-failure', launcher]
    one.start([shoal, 'run', ...options, ...words], env)
  }
  return task
}

/**
 * Runs a case.
 * @returns the faults that were found
 */
export async function runCase(plan: Plan, slack: number): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-ranks-'))
  const marker = `shoal-case-${process.pid}-${plan.seed}-${Math.random().toString(36).slice(2)}`
  const one = new Case(plan)
  const wrong: string[] = []
  try {
    const { done } = startAll(one, plan, folder, marker)
    const others = plan.worldSize - 1
    const isEnded = plan.launcher === 'stop'
    if (!(await one.until(() => one.isOver || (!isEnded && one.reports.length === others)))) {
      wrong.push(`${one.reports.length} of ${others} ranks have said how their wait ended`)
    }
    writeFileSync(done, '')
    if (plan.way === 'stop') kill(one.endedPid)
    if (!(await one.until(() => one.isOver))) wrong.push('it does not end')
    wrong.push(...(isEnded ? checkEnded(plan, one) : checkReports(plan, one, slack)))
    rmSync(done)
    one.killAll()
    for (const left of await leftovers(marker, folder)) wrong.push(`left: ${left}`)
  } finally {
    one.killAll()
    rmSync(folder, { recursive: true, force: true })
  }
  return wrong.length === 0 ? [] : [...wrong, ...one.errors.map((text) => `stderr: ${text.trim()}`)]
}

/** Checks that `shoal run` has ended all ranks with the status of the first failed rank. */
function checkEnded({ way }: Plan, { ends, faultAt }: Case): string[] {
  if (faultAt === undefined) return ['the rank did not come to where it was to die']
  const status = way === 'kill' ? 128 + 9 : 1
  return ends[0] === status ? [] : [`shoal run ended with status ${ends[0]}, not ${status}`]
}

/** Returns true if a fault concerns only time. */
export function isLate(words: string): boolean {
  return /^rank \d+: (\d+ ms after the deadline|job\.lost fired)/.test(words)
}

function checkReports(plan: Plan, { reports, faultAt, ends, pids }: Case, slack: number): string[] {
  const { endedRank, stage, launcher, worldSize } = plan
  const wrong: string[] = []
  if (faultAt === undefined) return ['the rank did not come to where it was to die']
  if (pids.length !== worldSize) wrong.push(`${pids.length} of ${worldSize} ranks began`)
  const silent = isSilent(plan)
  for (const {
    rank,
    since = 0,
    at = 0,
    stall = 0,
    code = '',
    message,
    ranks = [],
    unexpected,
    lostAt,
    lostRanks,
  } of reports) {
    const say = (words: string): void => void wrong.push(`rank ${rank}: ${words} (${code}: ${message})`)
    if (unexpected !== undefined) {
      wrong.push(`rank ${rank}: ${unexpected}`)
      continue
    }
    const late = silent ? at - since - plan.limit : at - Math.max(since, faultAt)
    // A busy machine may not run the rank for a while, so that time is subtracted.
    if (late - stall > slack) say(`${late} ms after the deadline, ${stall} ms of them not run`)
    // In bootstrap, the first rank whose limit passes ends the wait of all others.
    if (silent && stage !== 'bootstrap' && late < -50) say(`${-late} ms before its limit`)
    if (!codesOf(plan).test(code)) say('another error than this')
    // In these cases the error cannot name the rank: no rank knows who would have set a key, and with a foreign
    // launcher only rank 0 knows which ranks have joined.
    const isNameless =
      (stage === 'get' && silent) || (stage === 'bootstrap' && launcher === 'foreign' && endedRank === 0)
    const isNaming = /RENDEZVOUS_TIMEOUT|RANKS_LOST/.test(code) && !isNameless
    // A rank that gives up in bootstrap leaves too, so later ranks also get its name.
    const isAmong = stage === 'bootstrap' && plan.way === 'exit' && ranks.includes(endedRank)
    if (isNaming && !isAmong && String(ranks) !== String(endedRank))
      say(`names ${ranks.join(', ') || 'nobody'}, not ${endedRank}`)
    if (silent || stage === 'bootstrap') continue
    if (String(lostRanks) !== String(endedRank)) say(`job.lost names ${lostRanks?.join(', ') || 'nobody'}`)
    else if ((lostAt ?? 0) - Math.max(since, faultAt) - stall > slack) {
      say(`job.lost fired ${(lostAt ?? 0) - faultAt} ms later, ${stall} ms of them not run`)
    }
  }
  const failed = ends.filter((code) => code !== 0).length
  const expected = launcher === 'foreign' && plan.way !== 'exit' ? 1 : 0
  if (failed !== expected) wrong.push(`exit statuses ${ends.join(', ')}`)
  return wrong
}

/** Returns the error codes that the other ranks may get. */
function codesOf(plan: Plan): RegExp {
  const { stage } = plan
  if (stage === 'initRank')
    return /^(SHOAL_ABORTED|SHOAL_COMMUNICATOR_ABORTED|SHOAL_TIMEOUT|ncclRemoteError|ncclSystemError)$/
  // If the rank died before the others queued their part, the call itself fails.
  if (stage === 'allReduce' || stage === 'sendReceive') return /^(SHOAL_COMMUNICATOR_ABORTED|ncclRemoteError)$/
  if (stage === 'nvshmem') return /^(SHOAL_ABORTED|SHOAL_TIMEOUT|NVSHMEMX_ERROR_INTERNAL)$/
  if (stage === 'descriptor') return isSilent(plan) ? /^SHOAL_TIMEOUT$/ : /^(ECONNRESET|SHOAL_ABORTED)$/
  if (isSilent(plan)) return /^SHOAL_RENDEZVOUS_TIMEOUT$/
  return stage === 'get' ? /^(SHOAL_RANKS_LOST|SHOAL_ABORTED)$/ : /^SHOAL_RANKS_LOST$/
}
