import { fileURLToPath } from 'node:url'
import { SubjectProcess } from '../subjectProcess.js'
import type { Sizes } from './sizes.js'

const program = fileURLToPath(new URL('rangesChild.js', import.meta.url))
// V8's heap and compiled code grow during some five thousand ranges, which would look like a leak. So the young
// generation is small, and as many ranges precede the first reading as follow it.
const flags = ['--expose-gc', '--min-semi-space-size=1', '--max-semi-space-size=1']

/** The request for each reading. */
const readings = { residentBytes: 'resident', freeDeviceBytes: 'free', descriptors: 'descriptors' } as const

/** The resources that a process uses. */
type ResourceUse = Readonly<Record<keyof typeof readings, number>>

/** The resources in use before and after, and the time per range. */
export interface RangeFigures {
  readonly first: ResourceUse
  readonly last: ResourceUse
  readonly microseconds: number
}

/** Measures whether ranges leak resources after they are released: in C, and in a separate Node process. */
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
