import { type DType, longestTimeout } from '@shoal/types'
import { HelpRequest, UsageError } from '../command.js'
import { oneOf, parseCommandLine, wholeNumber } from './commandLine.js'
import { parseBytes, requireFewSizes, type Sweep } from './size.js'

/** Types that NCCL transfers: Shoal's names and those of nccl-tests. */
export const typeNames = {
  i8: 'int8',
  u8: 'uint8',
  i32: 'int32',
  u32: 'uint32',
  i64: 'int64',
  u64: 'uint64',
  f16: 'half',
  f32: 'float',
  f64: 'double',
  bf16: 'bfloat16',
  f8e4m3: 'f8e4m3',
  f8e5m2: 'f8e5m2',
} as const satisfies { readonly [D in DType]?: string }
export type BenchType = keyof typeof typeNames
export const reductions = ['sum', 'prod', 'max', 'min', 'avg'] as const
export type Reduction = (typeof reductions)[number]

/** Warm-ups before the first size, while V8 compiles the loops and libraries connect the ranks. */
export const firstRuns = 300

/** Returns fewer warm-ups for a large first size, where compile time does not matter. */
export function firstRunsOf(bytes: number): number {
  return Math.max(3, Math.min(firstRuns, Math.floor(2 ** 26 / bytes)))
}

export interface BenchOptions {
  readonly test: string
  readonly sweep: Sweep
  readonly types: readonly BenchType[]
  readonly reductions: readonly Reduction[]
  /** -1 for each rank, one after another. */
  readonly root: number
  readonly iterations: number
  readonly warmUps: number
  readonly check: boolean
  readonly inPlace: 'both' | 'in' | 'out'
  /** Devices of this process, or PEs to start. Default: all devices. */
  readonly devices: number | undefined
  readonly timeout: number
  readonly json: string | undefined
  readonly svg: string | undefined
  readonly software: boolean
}

export const usage = `usage: shoal bench TEST [options]
       shoal run -n N --no-prefix --exec shoal bench TEST [options]

Collectives of NCCL, with the columns of nccl-tests:
  all-reduce  all-gather  reduce-scatter  all-to-all  broadcast  reduce  gather  scatter  send-recv

One-sided operations of NVSHMEM, one process per PE, measured like the NVSHMEM perftests:
  put  get        latency and bandwidth on a stream and from the host
  atomic          latency and rate of host atomics
  barrier         latency of barrier and sync, on a stream and from the host

  calls           cost of calls that queue work: copies, launches, records, allocations

  -b, --min-bytes SIZE    smallest message (default: 8)
  -e, --max-bytes SIZE    largest message (default: 128M, and 1M on the software device)
  -f, --step-factor N     next size = size × N (default: 2)
  -i, --step-bytes SIZE   next size = size + SIZE
  -d, --datatype TYPE     f32 or float, bf16 or bfloat16, …; several with commas, or all (default: f32)
  -o, --op OP             sum, prod, max, min, avg; several with commas, or all (default: sum)
  -r, --root RANK         root of rooted operations; all: every rank in turn (default: 0)
  -n, --iterations N      timed iterations (default: 20)
  -w, --warm-ups N        iterations before the timed ones (default: 5)
  -c, --check 0|1         compare every element of the results (default: 1)
      --in-place WHICH    both (default), in, out
  -g, --devices N         ranks in one process, or PEs to start (default: all devices)
      --device sim        on the software device, whose figures mean nothing
      --timeout SECONDS   limit for connecting the ranks, and for each size (default: 120)
      --json FILE         all figures; - prints them, and the table goes to standard error
      --svg FILE          a plot of them; needs the package echarts
      --help

Sizes are bytes: 8, 64K, 16M, 1G. A size is that of the larger side of a rank, as in nccl-tests. Before the first size
everything runs up to ${firstRuns} times, so that V8 has compiled it.

This process drives all devices. If shoal run, torchrun, mpirun or srun started it as a rank, each rank has one device,
and rank 0 prints.

Exit status: 0; 1 if results are wrong or something failed; 2 if the command line is wrong.`

const flags = {
  'min-bytes': { type: 'string', short: 'b', default: '8' },
  'max-bytes': { type: 'string', short: 'e' },
  'step-factor': { type: 'string', short: 'f', default: '2' },
  'step-bytes': { type: 'string', short: 'i' },
  datatype: { type: 'string', short: 'd', default: 'f32' },
  op: { type: 'string', short: 'o', default: 'sum' },
  root: { type: 'string', short: 'r', default: '0' },
  iterations: { type: 'string', short: 'n', default: '20' },
  'warm-ups': { type: 'string', short: 'w', default: '5' },
  check: { type: 'string', short: 'c', default: '1' },
  'in-place': { type: 'string', default: 'both' },
  devices: { type: 'string', short: 'g' },
  device: { type: 'string' },
  timeout: { type: 'string', default: '120' },
  json: { type: 'string' },
  svg: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

export type OptionName = keyof typeof flags

/** Options of every test. */
const ofAll: readonly OptionName[] = ['iterations', 'warm-ups', 'device', 'json', 'svg', 'help']
/** Options that define the sizes. */
export const sizeOptions: readonly OptionName[] = ['min-bytes', 'max-bytes', 'step-factor', 'step-bytes']

/**
 * Reads the options of a test.
 *
 * @param tests each test's options, in addition to those of all tests
 * @throws UsageError, HelpRequest
 */
export function readOptions(
  commandLine: readonly string[],
  tests: { readonly [test: string]: readonly OptionName[] },
): BenchOptions {
  const { values, positionals, tokens } = parseCommandLine(commandLine, flags)
  if (values.help === true) throw new HelpRequest()
  const [test, ...rest] = positionals
  const names = Object.keys(tests).join(', ')
  if (test === undefined) throw new UsageError(`which test? There are ${names}`)
  const own = Object.hasOwn(tests, test) ? tests[test] : undefined
  if (own === undefined) throw new UsageError(`there is no test '${test}'; there are ${names}`)
  if (rest.length > 0) throw new UsageError(`unexpected ${rest.join(' ')}`)
  const given = tokens.flatMap((token) => (token.kind === 'option' ? [token.name as OptionName] : []))
  const idle = given.find((name) => ![...ofAll, ...own].includes(name))
  if (idle !== undefined) throw new UsageError(`--${idle} does not apply to ${test}`)
  if (given.includes('step-factor') && given.includes('step-bytes'))
    throw new UsageError('--step-factor and --step-bytes both set the next size: pass one of them')
  for (const name of ['json', 'svg'] as const)
    if (values[name] === '') throw new UsageError(`--${name} must be the name of a file, or -`)
  const device = values.device === undefined ? undefined : oneOf(values.device, '--device', ['gpu', 'sim'])
  const software = device === 'sim' || (device === undefined && process.env['SHOAL_DEVICE'] === 'sim')
  const least = parseBytes(values['min-bytes'], '--min-bytes')
  const most = parseBytes(values['max-bytes'] ?? (software ? '1M' : '128M'), '--max-bytes')
  if (values['max-bytes'] !== undefined && most < least)
    throw new UsageError(`--max-bytes ${values['max-bytes']} is less than --min-bytes ${values['min-bytes']}`)
  const sweep: Sweep = {
    least,
    most: Math.max(least, most),
    factor: wholeNumber(values['step-factor'], '--step-factor', 2),
    step: values['step-bytes'] === undefined ? undefined : parseBytes(values['step-bytes'], '--step-bytes'),
  }
  requireFewSizes(sweep)
  if (values.json === '-' && values.svg === '-')
    throw new UsageError('--json - and --svg - would both be printed: name a file for one')
  return {
    test,
    sweep,
    types: list(values.datatype, '--datatype', Object.keys(typeNames) as BenchType[], (word) =>
      (Object.keys(typeNames) as BenchType[]).find((name) => name === word || typeNames[name] === word),
    ),
    reductions: list(values.op, '--op', reductions, (word) => reductions.find((name) => name === word)),
    root: values.root === 'all' ? -1 : wholeNumber(values.root, '--root', 0),
    iterations: wholeNumber(values.iterations, '--iterations', 1),
    warmUps: wholeNumber(values['warm-ups'], '--warm-ups', 0),
    check: oneOf(values.check, '--check', ['0', '1']) === '1',
    inPlace: oneOf(values['in-place'], '--in-place', ['both', 'in', 'out']),
    devices: values.devices === undefined ? undefined : wholeNumber(values.devices, '--devices', 1),
    timeout: readTimeout(values.timeout),
    json: values.json,
    svg: values.svg,
    software,
  }
}

/** Parses seconds and returns milliseconds within the limit of timers. */
function readTimeout(text: string): number {
  const seconds = wholeNumber(text, '--timeout', 1)
  const most = Math.floor(longestTimeout / 1000)
  if (seconds > most) throw new UsageError(`--timeout must be at most ${most} seconds, not ${seconds}`)
  return seconds * 1000
}

function list<T>(text: string, option: string, all: readonly T[], find: (word: string) => T | undefined): readonly T[] {
  if (text === 'all') return all
  return text.split(',').map((word) => {
    const found = find(word)
    if (found === undefined) throw new UsageError(`${option}: no ${word}; there are ${all.join(', ')}, all`)
    return found
  })
}
