import { createRequire } from 'node:module'
import { maximumArguments } from '../calls/block.js'
import { recording } from '../calls/recording.js'

/** A C function called through koffi. */
export type ForeignFunction = (...values: unknown[]) => unknown

type Koffi = typeof import('koffi')

const require = createRequire(import.meta.url)
let koffi: Koffi | undefined

// Loaded on first use: most programs never call a function that needs it.
function theKoffi(): Koffi {
  return (koffi ??= require('koffi') as Koffi)
}

/** Makes a function at an address callable through koffi. */
export function bindForeignFunction(address: bigint, prototype: string, name: string): ForeignFunction {
  const library = theKoffi()
  const type = library.proto(prototype.replace('%s', ''))
  const call = library.decode(address, type) as ForeignFunction
  return (...values) => {
    if (recording.addon !== undefined) throw new TypeError(`${name} cannot be queued for another thread`)
    if (values.length > maximumArguments) throw new RangeError(`${name}: too many arguments`)
    return call(...values)
  }
}
