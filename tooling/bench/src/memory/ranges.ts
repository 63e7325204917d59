import { fileURLToPath } from 'node:url'
import { SubjectProcess } from '../subjectProcess.js'
import type { Sizes } from './sizes.js'

const program = fileURLToPath(new URL('rangesChild.js', import.meta.url))
// V8's heap and compiled code grow over some five thousand ranges, which would count as a leak: hence a small young
// generation, and as many ranges before the first reading as after it.
const flags = ['--expose-gc', '--min-semi-space-size=1', '--max-semi-space-size=1']

/** The request for each reading. */
const readings = { residentBytes: 'resident', freeDeviceBytes: 'free', descriptors: 'descriptors' } as const

/** What a process uses. */
type ResourceUse = Readonly<Record<keyof typeof readings, number>>

/** What was used before and after, and how long one range took. */
export interface RangeFigures {
  readonly first: ResourceUse
  readonly last: ResourceUse
  readonly microseconds: number
}

/** Measures what ranges leave behind that are made and released: in C, and in a Node process of its own. */
export async function measureRanges(c: SubjectProcess, sizes: Sizes): Promise<Record<string, RangeFigures>> {
  const [node] = await SubjectProcess.start('rangesChild.js', process.execPath, [...flags, program])
  const figures = { C: await measureOne(c, sizes), driver: await measureOne(node, sizes) }
  node.close()
  return figures
}

async function measureOne(subject: SubjectProcess, { warmUpRanges, ranges }: Sizes): Promise<RangeFigures> {
  const readUse = async (): Promise<ResourceUse> => {
    const found: Record<string, number> = {}
    for (const [name, request] of Object.entries(readings)) found[name] = await subject.measure(request)
    return found as ResourceUse
  }
  await subject.measure(`ranges ${warmUpRanges}`)
  const first = await readUse()
  const nanoseconds = await subject.measure(`ranges ${ranges}`)
  return { first, last: await readUse(), microseconds: nanoseconds / 1000 }
}
