import { HelpRequest, UsageError } from '../command.js'

export const usage = `usage: shoal run -n N [options] [node options] SCRIPT [arguments of the script]

Starts N processes of SCRIPT, one per rank, on this machine. Each gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
MASTER_ADDR and MASTER_PORT, and finds the others with bootstrap() of @shoal/launch.

  -n, --ranks N           number of ranks; required
  --on-failure stop       the first rank that fails ends all others (default)
  --on-failure continue   the others continue, for programs that recover with job.survivors()
  --device-map rank       all ranks see all devices, rank i uses device i (default)
  --device-map each       each rank sees its own device only, as device 0
  --device-map 2,3,0,1    these devices, in this order: rank i uses the i-th
  --grace SECONDS         time between SIGTERM and SIGKILL (default: 10)
  --no-prefix             print no [rank] before each line of output
  --stdin                 rank 0 reads the standard input; by default no rank does
  --exec                  SCRIPT is any program, not a Node script
  --help

Other options before SCRIPT are passed to Node, for example --max-old-space-size=8192;
--inspect takes the next port for each further rank. TypeScript files run where Node can strip their types (22.6 and
later), or where the package tsx is installed.

Exit status: that of the first rank that failed, or 128 plus the number of the signal that ended it. With
--on-failure continue it is 0 if at least one rank ended with 0. 2: the command line is wrong.`

export type DeviceMap = 'rank' | 'each' | readonly number[]

export interface RunOptions {
  readonly ranks: number
  readonly onFailure: 'stop' | 'continue'
  readonly deviceMap: DeviceMap
  /** Grace time in milliseconds. */
  readonly grace: number
  readonly prefix: boolean
  readonly stdin: boolean
  readonly exec: boolean
  readonly nodeOptions: readonly string[]
  readonly script: string
  readonly scriptArguments: readonly string[]
}

/** Options of Node whose value may be the next word. */
const nodeOptionsWithValue = new Set([
  '-r',
  '--require',
  '--import',
  '--loader',
  '--experimental-loader',
  '-C',
  '--conditions',
  '--env-file',
  '--env-file-if-exists',
  '--title',
  '--icu-data-dir',
  '--openssl-config',
  '--unhandled-rejections',
  '--disable-warning',
])

/** Options of Node without a script after them. */
const nodeOptionsWithoutScript = new Set(['-e', '--eval', '-p', '--print', '-i', '--interactive', '-c', '--check'])

/** Reads the options of `shoal run`. @throws UsageError, HelpRequest */
export function readRunOptions(commandLine: readonly string[]): RunOptions {
  const words = [...commandLine]
  const nodeOptions: string[] = []
  const given = {
    ranks: undefined as number | undefined,
    onFailure: 'stop' as 'stop' | 'continue',
    deviceMap: 'rank' as DeviceMap,
    grace: 10_000,
    prefix: true,
    stdin: false,
    exec: false,
  }
  while (words[0]?.startsWith('-') === true && words[0] !== '-') {
    const word = words.shift() as string
    if (word === '--') break
    const [name, inline] = split(word)
    const value = (): string => {
      const text = inline ?? words.shift()
      if (text === undefined) throw new UsageError(`${name} needs a value`)
      return text
    }
    const flag = (): true => {
      if (inline !== undefined) throw new UsageError(`${name} takes no value`)
      return true
    }
    if (name === '-n' || name === '--ranks') given.ranks = readCount(name, value())
    else if (name === '--on-failure') given.onFailure = readChoice(name, value(), ['stop', 'continue'])
    else if (name === '--device-map') given.deviceMap = readDeviceMap(value())
    else if (name === '--grace') given.grace = readSeconds(name, value())
    else if (name === '--no-prefix') given.prefix = !flag()
    else if (name === '--stdin') given.stdin = flag()
    else if (name === '--exec') given.exec = flag()
    else if (name === '--help' || name === '-h') throw new HelpRequest()
    else if (nodeOptionsWithoutScript.has(name)) throw new UsageError(`${name}: the ranks need a script file`)
    else {
      nodeOptions.push(word)
      if (inline === undefined && nodeOptionsWithValue.has(name)) nodeOptions.push(value())
    }
  }
  const [script, ...scriptArguments] = words
  const { ranks } = given
  if (ranks === undefined) throw new UsageError('-n, the number of ranks, is missing')
  if (script === undefined) throw new UsageError('the script is missing')
  if (given.exec && nodeOptions.length > 0)
    throw new UsageError(`${nodeOptions[0]}: options of Node cannot be used with --exec`)
  if (typeof given.deviceMap === 'object' && given.deviceMap.length < ranks) {
    throw new UsageError(`--device-map names ${given.deviceMap.length} devices for ${ranks} ranks`)
  }
  return { ...given, ranks, nodeOptions, script, scriptArguments }
}

/** Splits `--name=value`, and the short form `-n4`. */
function split(word: string): [string, string | undefined] {
  const short = /^-n(\d.*)$/.exec(word)
  if (short !== null) return ['-n', short[1]]
  const equals = word.indexOf('=')
  return equals < 0 ? [word, undefined] : [word.slice(0, equals), word.slice(equals + 1)]
}

function readCount(name: string, text: string): number {
  const count = Number(text)
  if (!/^\d+$/.test(text) || count < 1 || count > 1024) {
    throw new UsageError(`${name} must be a whole number from 1 to 1024, not '${text}'`)
  }
  return count
}

function readSeconds(name: string, text: string): number {
  const seconds = Number(text)
  if (text.trim() === '' || !(seconds >= 0 && seconds <= 86_400)) {
    throw new UsageError(`${name} must be a number of seconds from 0 to 86400, not '${text}'`)
  }
  return seconds * 1000
}

function readChoice<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const choice = choices.find((one) => one === text)
  if (choice === undefined) throw new UsageError(`${name} must be ${choices.join(' or ')}, not '${text}'`)
  return choice
}

function readDeviceMap(text: string): DeviceMap {
  if (text === 'rank' || text === 'each') return text
  if (!/^\d{1,4}(,\d{1,4})*$/.test(text)) {
    throw new UsageError(`--device-map must be rank, each or a list such as 2,3,0,1, not '${text}'`)
  }
  const devices = text.split(',').map(Number)
  const twice = devices.find((device, index) => devices.indexOf(device) !== index)
  if (twice !== undefined) throw new UsageError(`--device-map names device ${twice} twice; no two ranks can share one`)
  return devices
}
