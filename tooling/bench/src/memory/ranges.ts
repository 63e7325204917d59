import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Contestant } from '../contestant.js'
import type { Sizes } from './sizes.js'

const childScript = fileURLToPath(new URL('rangesChild.js', import.meta.url))

/** What a process has at a moment. */
export interface Holdings {
  readonly residentBytes: number
  readonly freeDeviceBytes: number
  readonly descriptors: number
}

/** What was there before and after, and how long one range took. */
export interface RangeFigures {
  readonly first: Holdings
  readonly last: Holdings
  readonly microseconds: number
}

/** What making ranges and giving them back leaves behind: in C, and in a Node process of its own. */
export async function measureRanges(
  c: Contestant,
  { warmUpRanges, ranges }: Sizes,
): Promise<Record<string, RangeFigures>> {
  const look = async (): Promise<Holdings> => ({
    residentBytes: await c.ask('resident'),
    freeDeviceBytes: await c.ask('free'),
    descriptors: await c.ask('descriptors'),
  })
  await c.ask(`ranges ${warmUpRanges}`)
  const first = await look()
  const nanoseconds = await c.ask(`ranges ${ranges}`)
  const inC = { first, last: await look(), microseconds: nanoseconds / 1000 }
  // V8 makes room for young objects, and for compiled code, bit by bit over some five thousand ranges, which would look like a
  // leak: hence a small young generation, and as many ranges before the first look as after it.
  const flags = ['--expose-gc', '--min-semi-space-size=1', '--max-semi-space-size=1']
  const options = [...flags, childScript, String(warmUpRanges), String(ranges)]
  const output = execFileSync(process.execPath, options, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  return { C: inC, driver: JSON.parse(output) as RangeFigures }
}
