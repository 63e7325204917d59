import { type Koffi, loadKoffi } from '../addon/koffi.js'
import { recording } from '../calls/recording.js'

/** A C function called through koffi. */
export type ForeignFunction = (...values: unknown[]) => unknown

let koffi: Koffi | undefined

/**
 * Binds a function of a library through koffi.
 *
 * @throws FeatureNotSupportedError if koffi is not installed.
 */
export function bindForeignFunction(path: string, symbol: string, prototype: string): ForeignFunction {
  koffi ??= loadKoffi(`${symbol} (bindForeign)`)
  const call = koffi.load(path).func(prototype.replace('%s', symbol)) as ForeignFunction
  return (...values) => {
    if (recording.addon !== undefined) throw new TypeError(`${symbol} cannot be queued for another thread`)
    return call(...values)
  }
}
