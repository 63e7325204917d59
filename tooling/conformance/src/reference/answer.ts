import { type CUresult, cuGetErrorName } from '@shoal/cuda-sys/driver'
import { readCString } from '@shoal/ffi'
import { StatusError } from '@shoal/types'

/** What JSON can say. */
export type Value = null | boolean | number | string | readonly Value[] | { readonly [name: string]: Value }

/** An integer as the program in C++ prints it: as text where no double holds it. */
export function plain(value: number | bigint): Value {
  return typeof value === 'number' || value < 2n ** 53n ? Number(value) : `0x${value.toString(16)}`
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

/** What a function of the raw package refused. */
class Refused extends Error {
  readonly status: number

  constructor(status: number) {
    super(`refused with ${status}`)
    this.status = status
  }
}

/** Throws where a function of the raw package refuses. */
export function check(status: number): void {
  if (status !== 0) throw new Refused(status)
}

/** The driver's name of a status, which the runtime has by the same number. */
function nameOf(status: number): string {
  const out = new BigUint64Array(1)
  const isKnown = cuGetErrorName(status as CUresult, out) === 0
  return (isKnown && readCString(out[0] as bigint)) || 'unknown'
}

/** The bytes that a function of the raw package writes. */
export function written(byteLength: number, call: (out: Uint8Array) => number): Uint8Array {
  const out = new Uint8Array(byteLength)
  check(call(out))
  return out
}

/** What `ask` gives; or how the driver refuses it, or a check of the packages before the driver is asked. */
export function attempt(ask: () => Value): Value {
  try {
    return ask()
  } catch (error) {
    if (error instanceof StatusError || error instanceof Refused) return { refused: nameOf(error.status) }
    if (error instanceof RangeError || error instanceof TypeError) return { refusedHere: error.message }
    throw error
  }
}
