/** The campaign: runs sequences in slices, from a seed on, until it has made enough steps or a sequence fails. */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { type Sanitizer, sanitizedLaunch, sanitizers } from './sanitize.js'
import { shrink } from './shrink.js'
import { type Failure, type Launch, type Outcome, runSlice, type SliceOptions } from './slice.js'

/** Number of steps in a sequence. */
export const sequenceSteps = 150
/**
 * Number of sequences in one process. There must be enough of them that one sequence can harm a later one. With a
 * sanitizer there are more, because the process starts slowly.
 */
const sliceSequences = { plain: 40, sanitized: 200 }
/**
 * Number of PEs of successive slices. A single PE may make calls that would confuse other PEs: abort calls, or use
 * symmetric memory through CUDA.
 */
const sliceSizes = [1, 1, 2, 1, 1, 3]
/** Indices in `sliceSizes` of the slices that have workers. */
const withWorkers = [1, 2]
const mostShrinkRuns = 40

export const usage = `usage: npm run fuzz -- [model] [options]

Random sequences over driver, runtime, nccl and nvshmem on the software device, compared with a model.

options
  --seed N           begins with the sequence of this seed; alone: makes that sequence only. Default: a new one
  --steps N          how many steps, of all processes together (default: 20000; an hour: 10000000)
  --only LIST        makes only these steps of the sequence of --seed, as 0,4,17
  --pes N            processes of each NVSHMEM job (default: 1, 2 or 3, by the seed)
  --sanitize KIND    address (with undefined behaviour) or thread: builds the addon and the software device with it

The exit status is 1 when anything was not as it should be.`

export interface CampaignOptions {
  readonly seed: number
  readonly steps: number
  readonly only?: readonly number[] | undefined
  readonly pes?: number | undefined
  readonly sanitizer?: Sanitizer | undefined
  readonly say: (line: string) => void
}

export interface CampaignResult {
  readonly steps: number
  readonly failure: Failure | undefined
}

/** Parses the command line. Returns an error message if an option is wrong. */
export function readOptions(values: readonly string[]): Omit<CampaignOptions, 'say'> | string {
  const { values: given } = parseArgs({
    args: [...values],
    options: {
      seed: { type: 'string' },
      steps: { type: 'string' },
      only: { type: 'string' },
      pes: { type: 'string' },
      sanitize: { type: 'string' },
    },
  })
  const { sanitize } = given
  if (sanitize !== undefined && !isSanitizer(sanitize)) return `--sanitize must be ${sanitizers.join(' or ')}`
  const seed = given.seed === undefined ? randomInt(2 ** 31) : Number(given.seed)
  const steps = given.steps === undefined ? (given.seed === undefined ? 20_000 : 1) : Number(given.steps)
  const pes = given.pes === undefined ? undefined : Number(given.pes)
  const only = given.only?.split(',').map(Number)
  const numbers = { seed: [seed], steps: [steps], pes: [pes ?? 1], only: only ?? [] }
  for (const [name, list] of Object.entries(numbers)) {
    if (!list.every((value) => Number.isSafeInteger(value) && value >= 0)) return `--${name} must be a whole number`
  }
  return { seed, steps, pes, only, sanitizer: sanitize }
}

function isSanitizer(value: string): value is Sanitizer {
  return sanitizers.includes(value as Sanitizer)
}

export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const { seed, steps, only, sanitizer, say } = options
  const launch: Launch = sanitizer === undefined ? { environment: {}, prefix: [] } : sanitizedLaunch(sanitizer, say)
  const length = sanitizer === undefined ? sliceSequences.plain : sliceSequences.sanitized
  let made = 0
  for (let first = seed; made < steps; ) {
    const number = Math.floor(first / length)
    const pes = options.pes ?? (sliceSizes[number % sliceSizes.length] as number)
    const left = Math.ceil((steps - made) / sequenceSteps / pes)
    const sequences = only === undefined ? Math.min((number + 1) * length - first, left) : 1
    const workers = withWorkers.includes(number % sliceSizes.length)
    const slice = { firstSeed: first, sequences, steps: sequenceSteps, pes, workers, only }
    const outcome: Outcome = await runSlice(slice, launch)
    made += outcome.steps
    if (outcome.failure !== undefined) {
      await explain(outcome.failure, slice, options, launch)
      return { steps: made, failure: outcome.failure }
    }
    first += sequences
    if (steps > 100_000) say(`${made} steps, up to seed ${first - 1}`)
    if (only !== undefined) break
  }
  return { steps: made, failure: undefined }
}

/** Reports a failure and the command that repeats it, with the fewest steps that still fail. */
async function explain(
  failure: Failure,
  { firstSeed, pes, workers }: SliceOptions,
  { say, only, sanitizer }: CampaignOptions,
  launch: Launch,
): Promise<void> {
  const more = sanitizer === undefined ? '' : ` --sanitize ${sanitizer}`
  const command = (rest: string): string => `npm run fuzz -- --pes ${pes}${more} ${rest}`
  const { seed } = failure
  const where = failure.step === undefined ? '' : `, step ${failure.step}`
  say(`FAILED: seed ${seed}${where}, ${pes} PE(s)\n${failure.text}`)
  say(failure.log.slice(-15).join('\n'))
  say(`again: ${command(`--seed ${seed}`)}`)
  if (only !== undefined) return
  const alone = (steps: readonly number[]): Promise<Outcome> =>
    runSlice({ firstSeed: seed, sequences: 1, steps: sequenceSteps, pes, workers, only: steps }, launch)
  const all = [...Array((failure.step ?? sequenceSteps - 1) + 1).keys()].filter((step) => step < sequenceSteps)
  if ((await alone(all)).failure === undefined) {
    say(
      `alone it went well; with what came before it: ${command(`--seed ${firstSeed} --steps ${(seed - firstSeed + 1) * sequenceSteps * pes}`)}`,
    )
    return
  }
  const fewest = await shrink(all, async (steps) => (await alone(steps)).failure !== undefined, mostShrinkRuns)
  const last = (await alone(fewest)).failure
  say(`with ${fewest.length} steps: ${command(`--seed ${seed} --only ${fewest.join(',')}`)}`)
  say(last?.log.join('\n') ?? '')
}
