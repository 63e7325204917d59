import type { Device } from '@shoal/driver'
import type { Random } from './support/random.js'

/** What a case needs. If something is missing, the case is skipped and the reason is printed. */
export interface Requirements {
  /** The least number of devices. */
  readonly devices?: number
  /**
   * The least number of ranks, one process and one device each. The software device creates the devices; GPUs must
   * exist.
   */
  readonly ranks?: number
  /** Needs test kernels. On a GPU, SHOAL_KERNELS names their folder. */
  readonly kernels?: boolean
  /** Needs a way to keep a stream busy: the software device, or the spin kernel. */
  readonly delay?: boolean
  /** Runs only on the software device, or only on a GPU. */
  readonly only?: 'software' | 'hardware'
}

/** The tools of a case. */
export interface CaseContext {
  readonly devices: readonly Device[]
  /** The first device. */
  readonly device: Device
  readonly isSoftware: boolean
  /** New numbers in every run. The seed is printed when the case fails. */
  readonly random: Random
  /** The folder of test kernels. @throws Error on a GPU when SHOAL_KERNELS is not set. */
  readonly kernels: string
  /** Disposes of an object when the case ends, last made first. */
  own<T extends Disposable>(object: T): T
  /** Runs `fn` when the case ends, last registered first. */
  defer(fn: () => void | Promise<void>): void
  /** Ends the case as skipped, for this reason, because it cannot be tested here. */
  skip(reason: string): never
  /** Adds a line to the report, such as a measurement. */
  note(text: string): void
}

/** One behaviour, written once and checked on every device. */
export interface ConformanceCase {
  readonly name: string
  readonly requires?: Requirements
  /** Milliseconds; default 60,000. */
  readonly timeout?: number
  run(t: CaseContext): void | Promise<void>
}

/** Cases that belong together. */
export interface Suite {
  readonly name: string
  readonly cases: readonly ConformanceCase[]
}
