import { type CUresult, cuGetErrorName } from '@shoal/cuda-sys/driver'
import { readCString } from '@shoal/ffi'
import { StatusError } from '@shoal/types'

/** The values of JSON. */
export type Value = null | boolean | number | string | readonly Value[] | { readonly [name: string]: Value }

/** Formats an integer like the C++ program: as text if a double cannot hold it. */
export function plain(value: number | bigint): Value {
  return typeof value === 'number' || value < 2n ** 53n ? Number(value) : `0x${value.toString(16)}`
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

/** A function of the raw package refused a call. */
class Refused extends Error {
  readonly status: number

  constructor(status: number) {
    super(`refused with ${status}`)
    this.status = status
  }
}

/** Throws if a function of the raw package refused. */
export function check(status: number): void {
  if (status !== 0) throw new Refused(status)
}

/** Returns the driver's name of a status. The runtime has the same numbers. */
function nameOf(status: number): string {
  const out = new BigUint64Array(1)
  const isKnown = cuGetErrorName(status as CUresult, out) === 0
  return (isKnown && readCString(out[0] as bigint)) || 'unknown'
}

/** Returns the bytes that a function of the raw package writes. */
export function written(byteLength: number, call: (out: Uint8Array) => number): Uint8Array {
  const out = new Uint8Array(byteLength)
  check(call(out))
  return out
}

/** Returns the result of `ask`. If the driver or a check of the packages refuses, it returns that refusal. */
export function attempt(ask: () => Value): Value {
  try {
    return ask()
  } catch (error) {
    if (error instanceof StatusError || error instanceof Refused) return { refused: nameOf(error.status) }
    if (error instanceof RangeError || error instanceof TypeError) return { refusedHere: error.message }
    throw error
  }
}
