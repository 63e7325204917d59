import { type DType, type DTypeInfo, describeValue, dtypeInfo } from '@shoal/types'

/** The largest number of bytes one operation takes: sizes are JavaScript numbers. */
const maximumBytes = Number.MAX_SAFE_INTEGER

/** A whole number in `minimum..maximum`, or a TypeError (not a number, fraction, NaN) or RangeError that names it. */
export function requireInteger(value: number, name: string, minimum: number, maximum: number): number {
  if (typeof value !== 'number') throw new TypeError(`${name} must be a number, not ${describeValue(value)}`)
  if (!Number.isInteger(value)) {
    throw Number.isFinite(value) || Number.isNaN(value)
      ? new TypeError(`${name} must be a whole number, not ${value}`)
      : new RangeError(`${name} must be finite, not ${value}`)
  }
  if (value < minimum || value > maximum) {
    throw new RangeError(`${name} must be between ${minimum} and ${maximum}, not ${value}`)
  }
  return value
}

/** A 64-bit address, or a TypeError or RangeError that names it. */
export function requireAddress(value: bigint, name: string): bigint {
  if (typeof value !== 'bigint') throw new TypeError(`${name} must be a bigint, not ${describeValue(value)}`)
  if (value < 0n || value >= 2n ** 64n) throw new RangeError(`${name} must fit 64 bits, not ${value}`)
  return value
}

/** A number of elements, checked so that its bytes stay a safe integer. */
export function requireLength(value: number, name: string, bytesPerElement: number): number {
  return requireInteger(value, name, 0, Math.floor(maximumBytes / bytesPerElement))
}

/** A dtype this project knows, or a TypeError. */
export function requireDType(dtype: DType): DTypeInfo {
  return dtypeInfo(dtype)
}

/** A string with no NUL in it, because C would cut it there. */
export function requireName(value: string, name: string): string {
  if (typeof value !== 'string') throw new TypeError(`${name} must be a string, not ${describeValue(value)}`)
  if (value.length === 0) throw new RangeError(`${name} must not be empty`)
  if (value.includes('\0')) throw new TypeError(`${name} must not contain a NUL character: ${JSON.stringify(value)}`)
  return value
}

/** A boolean option with a default. */
export function optionalBoolean(value: boolean | undefined, name: string, fallback: boolean): boolean {
  if (value === undefined) return fallback
  if (typeof value !== 'boolean') throw new TypeError(`${name} must be a boolean, not ${describeValue(value)}`)
  return value
}

/** A plain object of options, or a TypeError that says what to write: `{ stream }`, not `stream`. */
export function requireOptions(options: unknown, name: string, example: string): void {
  if (typeof options === 'object' && options !== null) {
    const prototype: unknown = Object.getPrototypeOf(options)
    // That of an object literal of this or of another realm has no prototype of its own.
    if (prototype === null || Object.getPrototypeOf(prototype) === null) return
  }
  throw new TypeError(`${name} must be an object such as ${example}, not ${describeValue(options)}`)
}

/** Puts the method and the parameter in front of what a general check says. */
export function named<T>(api: string, parameter: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) {
      error.message = `${api}: ${parameter}: ${error.message}`
    }
    throw error
  }
}
