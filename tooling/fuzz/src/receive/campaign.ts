import { parseArgs } from 'node:util'
import { type Case, caseOf, type Kind, kinds } from './cases.js'
import { type Memories, memoriesOfProcess, type Template } from './memories.js'
import type { Outcome } from './question.js'
import { Sender } from './sender.js'
import { Victim } from './victimProcess.js'

export interface ReceiveOptions {
  readonly seed: number
  /** Number of cases. Each case uses the next seed. */
  readonly count: number
  /** Runs only cases of this kind. */
  readonly only?: Kind | undefined
  readonly onFailure?: ((words: string) => void) | undefined
  readonly onCase?: ((ran: number) => void) | undefined
}

export interface ReceiveResult {
  readonly ran: number
  readonly refused: number
  readonly opened: number
  readonly failures: readonly string[]
  /** Number of occurrences of each error, by its text without the parts that vary. */
  readonly errors: ReadonlyMap<string, number>
}

/** Number of cases between two checks for leaks. */
const checkedAfter = 100

/** Returns the fault in the outcome of a case, or undefined if there is no fault. */
function faultOf(one: Case, outcome: Outcome, memories: Memories): string | undefined {
  if (outcome.kind === 'wrong') return outcome.what
  const ends = one.kind === 'share' ? ['done', 'refused'] : one.kind === 'handle' ? ['done'] : ['opened']
  if (one.isRight && one.kind !== 'thread' && one.template.name !== 'forged' && !ends.includes(outcome.kind))
    return `a message as it should be: ${JSON.stringify(outcome)}`
  if (outcome.kind !== 'opened') return undefined
  if (one.kind === 'thread') return outcome.own ? undefined : 'memory that this thread did not share'
  if (outcome.own || outcome.way === 'process') return 'memory of the process itself'
  return memories.stranger(Buffer.from(outcome.start, 'hex'), Buffer.from(outcome.end, 'hex'))
}

function describeCase({ seed, kind, template, parts, offers, answers }: Case): string {
  const text = (bytes: Uint8Array): string => Buffer.from(bytes.subarray(0, 700)).toString()
  const sent = parts.map(({ bytes, descriptors }) => `\n  ${descriptors.length} descriptors, ${text(bytes)}`)
  const more = kind === 'receive' ? offers : kind === 'share' ? answers : []
  return `--seed ${seed}, ${kind} ${template.name}${sent.join('')}\n  ${JSON.stringify(more).slice(0, 700)}`
}

/**
 * Sends wrong messages over every channel to a process that receives memory. Some senders end in the middle. Each case
 * must end with an error of Shoal or with memory that the sender really shared, and must leave nothing open.
 */
export async function runReceiveCampaign(options: ReceiveOptions): Promise<ReceiveResult> {
  const { seed, count, only, onFailure, onCase } = options
  const memories = await memoriesOfProcess()
  const failures: string[] = []
  const errors = new Map<string, number>()
  const counts = { refused: 0, opened: 0 }
  const fail = (words: string): void => {
    failures.push(words)
    onFailure?.(words)
  }
  let ran = 0
  let victim: Victim | undefined
  let sender: Sender | undefined
  const stop = (): void => {
    sender?.close()
    victim?.end()
    sender = victim = undefined
  }
  const start = async (): Promise<Sender> => {
    victim = new Victim()
    sender = new Sender(victim, memories.strays)
    const known = await victim.ask({ ask: 'secret' })
    if (known.kind === 'secret') forge(memories, known)
    // These cases load everything that is loaded on first use, so that later counts do not include it.
    for (const warm of warmUp(memories)) await sender.run(warm)
    await check()
    return sender
  }
  const check = async (): Promise<void> => {
    sender?.close()
    const outcome = await victim?.ask({ ask: 'check' })
    if (outcome?.kind === 'wrong') fail(`up to seed ${seed + ran}, ${checkedAfter} cases back: ${outcome.what}`)
    if (outcome?.kind === 'wrong') stop()
  }
  try {
    for (; ran < count; ran += 1) {
      const by = sender ?? (await start())
      const one = caseOf(seed + ran, memories, only)
      const outcome = await by.run(one)
      const fault = faultOf(one, outcome, memories)
      if (outcome.kind === 'refused') {
        counts.refused += 1
        const words = `${outcome.name} ${outcome.message
          .replace(/, not .*/s, '')
          .replace(/\d+/g, '#')
          .slice(0, 100)}`
        errors.set(words, (errors.get(words) ?? 0) + 1)
      }
      if (outcome.kind === 'opened' || outcome.kind === 'done') counts.opened += 1
      if (fault !== undefined) {
        fail(`${describeCase(one)}\n  ${fault}`)
        stop()
      } else if ((ran + 1) % checkedAfter === 0) await check()
      onCase?.(ran + 1)
    }
    await check()
  } finally {
    stop()
  }
  return { ran, ...counts, failures, errors }
}

/** Adds a message that names memory of the receiver, as if one of its threads had sent it. */
function forge(
  { shared }: Memories,
  { address, process }: { readonly address: string; readonly process: number },
): void {
  const [first] = shared as [Template]
  const data = { ...(first.messages[0]?.data as object), way: 'process', address, process }
  const name = 'forged'
  const forged = { name, messages: [{ data, descriptors: [] }] }
  const at = shared.findIndex((template) => template.name === name)
  shared.splice(at < 0 ? shared.length : at, at < 0 ? 0 : 1, forged)
}

/** Returns one right message of each template and kind. */
function warmUp(memories: Memories): Case[] {
  const found = new Map<string, Case>()
  for (let seed = 1; found.size < memories.shared.length + memories.handles.length + 1; seed += 1) {
    for (const kind of ['memory', 'handle', 'receive'] as const) {
      const one = caseOf(seed, memories, kind)
      const name = kind === 'receive' ? kind : `${kind} ${one.template.name}`
      if (one.isRight) found.set(name, one)
    }
  }
  return [...found.values()]
}

/** Command of `npm run fuzz -- receive`. */
export const wrongMessages = {
  title: `wrong messages for what receives memory: --seed N, --count N, --only ${kinds.join('|')}, --errors`,
  async run(values: readonly string[]): Promise<number> {
    const text = { type: 'string' } as const
    const options = { seed: text, count: text, only: text, errors: { type: 'boolean' } } as const
    const given = parseArgs({ args: [...values], options }).values
    const seed = Number(given.seed ?? Math.floor(Math.random() * 1e9))
    const say = (line: string): void => void process.stdout.write(`${line}\n`)
    say(`seed ${seed}`)
    const { ran, refused, opened, failures, errors } = await runReceiveCampaign({
      seed,
      count: Number(given.count ?? (given.seed === undefined ? 10_000 : 1)),
      only: kinds.find((kind) => kind === given.only),
      onFailure: say,
      onCase: (count) => {
        if (count % 1000 === 0) say(`${count} messages`)
      },
    })
    if (given.errors === true)
      for (const [words, times] of [...errors].sort((a, b) => b[1] - a[1])) say(`${String(times).padStart(8)} ${words}`)
    say(`${ran} messages from seed ${seed}: ${refused} refused, ${opened} opened, ${failures.length} failures`)
    return failures.length === 0 ? 0 : 1
  },
}
