import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { SubjectProcess } from '../subjectProcess.js'
import type { Sizes } from './sizes.js'

const childScript = fileURLToPath(new URL('rangesChild.js', import.meta.url))

/** What a process uses. */
export interface ResourceUse {
  readonly residentBytes: number
  readonly freeDeviceBytes: number
  readonly descriptors: number
}

/** What was used before and after, and how long one range took. */
export interface RangeFigures {
  readonly first: ResourceUse
  readonly last: ResourceUse
  readonly microseconds: number
}

/** Measures what ranges leave behind that are made and released: in C, and in a Node process of its own. */
export async function measureRanges(
  c: SubjectProcess,
  { warmUpRanges, ranges }: Sizes,
): Promise<Record<string, RangeFigures>> {
  const readUse = async (): Promise<ResourceUse> => ({
    residentBytes: await c.measure('resident'),
    freeDeviceBytes: await c.measure('free'),
    descriptors: await c.measure('descriptors'),
  })
  await c.measure(`ranges ${warmUpRanges}`)
  const first = await readUse()
  const nanoseconds = await c.measure(`ranges ${ranges}`)
  const inC = { first, last: await readUse(), microseconds: nanoseconds / 1000 }
  // V8's heap and compiled code grow over some five thousand ranges, which would count as a leak: hence a small young
  // generation, and as many ranges before the first reading as after it.
  const flags = ['--expose-gc', '--min-semi-space-size=1', '--max-semi-space-size=1']
  const options = [...flags, childScript, String(warmUpRanges), String(ranges)]
  const output = execFileSync(process.execPath, options, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  return { C: inC, driver: JSON.parse(output) as RangeFigures }
}
