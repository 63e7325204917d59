import { createRequire } from 'node:module'
import { recording } from '../calls/recording.js'

/** A C function called through koffi. */
export type ForeignFunction = (...values: unknown[]) => unknown

type Koffi = typeof import('koffi')

const require = createRequire(import.meta.url)
let koffi: Koffi | undefined

/**
 * Makes a function of a library callable through koffi, which is loaded on first use: most programs never need it. By
 * name, because koffi 3.3.4 crashes when it calls a function by address.
 */
export function bindForeignFunction(path: string, symbol: string, prototype: string): ForeignFunction {
  koffi ??= require('koffi') as Koffi
  const call = koffi.load(path).func(prototype.replace('%s', symbol)) as ForeignFunction
  return (...values) => {
    if (recording.addon !== undefined) throw new TypeError(`${symbol} cannot be queued for another thread`)
    return call(...values)
  }
}
