import { fileURLToPath } from 'node:url'
import { Device, isSoftwareDevice } from '@shoal/driver'
import type { CaseContext, ConformanceCase, Requirements, Suite } from './suite.js'
import { whyNoDelay } from './support/delay.js'
import { Random } from './support/random.js'

/** How a case ended. */
export interface CaseResult {
  readonly suite: string
  readonly name: string
  readonly outcome: 'ok' | 'fail' | 'skip'
  readonly milliseconds: number
  /** Why the case was skipped. */
  readonly reason?: string
  readonly error?: unknown
  /** The seed of its random numbers. SHOAL_SEED repeats them. */
  readonly seed?: number
  readonly notes: readonly string[]
}

const defaultTimeout = 60_000
const noKernels = 'SHOAL_KERNELS does not name the folder of test kernels'

/** The software device runs the PTX next to the kernels' sources. */
function kernelFolder(): string | undefined {
  const beside = isSoftwareDevice() ? fileURLToPath(new URL('../../gpu/kernels', import.meta.url)) : undefined
  return process.env['SHOAL_KERNELS'] ?? beside
}

/** Ends a case that cannot be tested here. */
class Skipped extends Error {}

/** Returns why a case cannot run here, or undefined. */
export function whySkipped(requires: Requirements = {}): string | undefined {
  const isSoftware = isSoftwareDevice()
  if (requires.only === 'software' && !isSoftware) return 'only for the software device'
  if (requires.only === 'hardware' && isSoftware) return 'only for a GPU'
  const count = Device.count
  if (count < (requires.devices ?? 1)) return `needs ${requires.devices ?? 1} devices, there are ${count}`
  const ranks = requires.ranks ?? 0
  if (!isSoftware && count < ranks) return `needs ${ranks} devices, there are ${count}`
  if (requires.kernels === true && kernelFolder() === undefined) return noKernels
  return requires.delay === true ? whyNoDelay() : undefined
}

/** Runs one case and its deferred functions. Never rejects. */
export async function runCase(suite: Suite, test: ConformanceCase): Promise<CaseResult> {
  const notes: string[] = []
  const common = { suite: suite.name, name: test.name, notes }
  const start = performance.now()
  const elapsed = (): number => Math.round(performance.now() - start)
  let seed: number | undefined
  try {
    const reason = whySkipped(test.requires)
    if (reason !== undefined) return { ...common, outcome: 'skip', milliseconds: elapsed(), reason }
    seed = Number(process.env['SHOAL_SEED'] ?? Math.floor(Math.random() * 2 ** 32))
    const random = new Random(seed)
    await withinTime(runWithCleanup(test, random, notes), test.timeout ?? defaultTimeout)
    return { ...common, outcome: 'ok', milliseconds: elapsed(), seed }
  } catch (error) {
    if (error instanceof Skipped) return { ...common, outcome: 'skip', milliseconds: elapsed(), reason: error.message }
    return { ...common, outcome: 'fail', milliseconds: elapsed(), error, ...(seed === undefined ? {} : { seed }) }
  }
}

async function runWithCleanup(test: ConformanceCase, random: Random, notes: string[]): Promise<void> {
  const cleanups: (() => void | Promise<void>)[] = []
  const context: CaseContext = {
    devices: Device.all(),
    device: Device.get(0),
    isSoftware: isSoftwareDevice(),
    random,
    get kernels() {
      const folder = kernelFolder()
      if (folder === undefined) throw new Error(noKernels)
      return folder
    },
    own(object) {
      cleanups.push(() => object[Symbol.dispose]())
      return object
    },
    defer(fn) {
      cleanups.push(fn)
    },
    skip(reason) {
      throw new Skipped(reason)
    },
    note(text) {
      notes.push(text)
    },
  }
  const errors: unknown[] = []
  try {
    await test.run(context)
  } catch (error) {
    errors.push(error)
  }
  for (const cleanup of cleanups.reverse()) {
    try {
      await cleanup()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length === 1) throw errors[0]
  if (errors.length > 1) throw new AggregateError(errors, 'the case failed, and so did cleaning up after it')
}

async function withinTime(work: Promise<void>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the case did not end within ${milliseconds} ms`)), milliseconds)
  })
  try {
    await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
