import { parseArgs } from 'node:util'

export const usage = `usage: node dist/main.js [options]

Appends rows to a tensor that grows in place, beside one that is allocated anew and copied each time it is full.

  --rows N    rows to append in all (default: 20000)
  --width N   f32 in a row (default: 1024)
  --batch N   rows that come at once (default: 1000)
  --help

SHOAL_DEVICE=sim runs it on the software device. Exit status: 0 all rows are right, 1 some are not, 2 it could not be tried.`

export interface Options {
  readonly rows: number
  readonly width: number
  readonly batch: number
  readonly help: boolean
}

/** The command line is wrong: the message says it all. */
export class UsageError extends Error {}

export function readOptions(commandLine: readonly string[]): Options {
  const { rows, width, batch, help } = parse(commandLine)
  return {
    rows: wholeNumber('rows', rows, 2 ** 24),
    width: wholeNumber('width', width, 2 ** 20),
    batch: wholeNumber('batch', batch, 2 ** 24),
    help,
  }
}

function parse(commandLine: readonly string[]) {
  try {
    return parseArgs({
      args: [...commandLine],
      options: {
        rows: { type: 'string', default: '20000' },
        width: { type: 'string', default: '1024' },
        batch: { type: 'string', default: '1000' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function wholeNumber(name: string, text: string, most: number): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isInteger(value) && value >= 1 && value <= most) return value
  throw new UsageError(`--${name} must be a whole number from 1 to ${most}, got ${text}`)
}
