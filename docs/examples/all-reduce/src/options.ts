import { parseArgs } from 'node:util'

export const usage = `usage: npm run demo -- [options]

Sums random f32 data over all devices with an NCCL all-reduce and checks every element of every device.

  --elements N     elements on each device (default: 4194307, an odd number on purpose)
  --ranks N        one process a rank instead of one for all; at most one rank a device
  --device WHICH   auto (default): GPUs where there are some, else the software device; gpu; sim
  --devices N      use the first N GPUs, or make N software devices (default: all GPUs, 2 software devices)
  --iterations N   all-reduces that are timed (default: 10)
  --verbose        tell where an error came from, with its stack
  --seed N         start of the random numbers (default: another one each time)

Exit status: 0 all elements are right, 1 some are not, 2 it could not be tried.
SHOAL_EXPECT_GPU=1 makes it fail where there is no GPU, instead of taking the software device.`

export interface Options {
  readonly elements: number
  readonly ranks: number | undefined
  readonly device: 'auto' | 'gpu' | 'sim'
  readonly devices: number | undefined
  readonly iterations: number
  readonly seed: number
  /** Spoils one element of the result after it was read back: shows that the check finds it. Not for users. */
  readonly corrupt: boolean
  readonly verbose: boolean
  readonly help: boolean
}

/** The command line or its environment is wrong: the message says it all, a stack would not help. */
export class UsageError extends Error {}

export function readOptions(commandLine: readonly string[]): Options {
  const values = parse(commandLine)
  const { device } = values
  if (device !== 'auto' && device !== 'gpu' && device !== 'sim') {
    throw new UsageError(`--device must be auto, gpu or sim, got ${device}`)
  }
  return {
    elements: wholeNumber('elements', values.elements, 1, 2 ** 31),
    ranks: values.ranks === undefined ? undefined : wholeNumber('ranks', values.ranks, 1, 1024),
    device,
    devices: values.devices === undefined ? undefined : wholeNumber('devices', values.devices, 1, 64),
    iterations: wholeNumber('iterations', values.iterations, 1, 1_000_000),
    seed:
      values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : wholeNumber('seed', values.seed, 0, 2 ** 31),
    corrupt: values.corrupt,
    verbose: values.verbose,
    help: values.help,
  }
}

function parse(commandLine: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...commandLine],
      options: {
        elements: { type: 'string', default: String(2 ** 22 + 3) },
        ranks: { type: 'string' },
        device: { type: 'string', default: 'auto' },
        devices: { type: 'string' },
        iterations: { type: 'string', default: '10' },
        seed: { type: 'string' },
        corrupt: { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    return values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isInteger(value) && value >= least && value <= most) return value
  throw new UsageError(`--${name} must be a whole number from ${least} to ${most}, got ${text}`)
}
