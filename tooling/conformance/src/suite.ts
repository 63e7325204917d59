import type { Device } from '@shoal/driver'
import type { Random } from './support/random.js'

/** What a case cannot do without. Where it is missing the case is skipped, with the reason printed. */
export interface Requirements {
  /** At least so many devices. */
  readonly devices?: number
  /** Processes with at least so many devices: the software device makes them, GPUs have to be there. */
  readonly ranks?: number
  /** Test kernels: on a GPU the folder that SHOAL_KERNELS names. */
  readonly kernels?: boolean
  /** A way to keep a stream busy: the software device, or the spin kernel. */
  readonly delay?: boolean
  /** Only the software device, or only a GPU. */
  readonly only?: 'software' | 'hardware'
}

/** What a case has at hand. */
export interface CaseContext {
  readonly devices: readonly Device[]
  /** The first device. */
  readonly device: Device
  readonly isSoftware: boolean
  /** Fresh numbers in every run; the seed is printed when the case fails. */
  readonly random: Random
  /** The folder of test kernels. @throws Error on a GPU when SHOAL_KERNELS is not set. */
  readonly kernels: string
  /** Disposes of an object when the case ends, last made first. */
  own<T extends Disposable>(object: T): T
  /** Runs when the case ends, last registered first. */
  defer(fn: () => void | Promise<void>): void
  /** Ends the case: its question cannot be asked here, for this reason, and it counts as skipped. */
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
