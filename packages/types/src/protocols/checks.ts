import { propertyOf } from '../anyValue.js'
import { requireAddress, requireInteger, wrongType } from '../arguments/scalars.js'

/** Largest ordinal: a C `int`. -1 means no device. */
const largestOrdinal = 0x7fff_ffff

const maxAddress = (1n << 64n) - 1n

const noAnswer: { readonly version?: unknown } = {}

// Every call with memory or a stream runs these checks, so they build names for errors only on failure.

/** Refuses a protocol answer whose version is not 0 or another known version. */
export function checkVersion(answer: unknown, protocol: string, api: string, name: string, newest = 0): void {
  const { version } = typeof answer === 'object' && answer !== null ? (answer as { version?: unknown }) : noAnswer
  if (version === 0 || (version === 1 && newest === 1)) return
  const property = `${name}[Symbol.for('${protocol}')]`
  if (typeof answer === 'function') throw wrongType(api, property, 'a property or getter that gives the data', answer)
  if (typeof answer !== 'object' || answer === null) throw wrongType(api, property, 'an object', answer)
  throw wrongType(api, `${property}.version`, newest === 0 ? '0, the only one known here' : '0 or 1', version)
}

/** Refuses an answer whose property is not an unsigned 64-bit bigint. */
export function checkAddress(value: unknown, api: string, name: string, property: string): void {
  if (typeof value !== 'bigint' || value < 0n || value > maxAddress) requireAddress(value, api, `${name}.${property}`)
}

/** Refuses a value that is not a device ordinal, or -1 for none or unknown. */
export function checkOrdinal(value: unknown, api: string, name: string): void {
  if (typeof value === 'number' && (value | 0) === value && value >= -1) return
  requireInteger(value, api, `${name}.deviceOrdinal`, -1, largestOrdinal)
}

/** Refuses an answer whose property is not a number of bytes or elements. */
export function checkCount(value: unknown, api: string, name: string, property: string): void {
  if (!Number.isSafeInteger(value) || (value as number) < 0) requireInteger(value, api, `${name}.${property}`, 0)
}

/** Returns a device ordinal; the driver checks that the device exists. @throws TypeError, RangeError */
export function requireOrdinal(value: unknown, api: string, name: string): number {
  return requireInteger(value, api, name, 0, largestOrdinal)
}

/** True if a value has the protocol's property; does not run its getter. False for a revoked proxy. */
export function offers(value: unknown, protocol: symbol): boolean {
  if (typeof value !== 'object' || value === null) return false
  try {
    return protocol in value
  } catch {
    return false
  }
}

/** True for a plain descriptor of the given kind. */
export function isPlain<K extends string>(value: unknown, kind: K): value is { readonly kind: K } {
  return typeof value === 'object' && propertyOf(value, 'kind') === kind
}

/** Refuses a descriptor of another process, in which its handles and addresses are not valid. */
export function checkSameProcess(
  descriptor: { readonly process: number },
  api: string,
  name: string,
  hint: string,
): void {
  if (descriptor.process === process.pid) return
  throw new TypeError(
    `${api}: ${name} must be of this process, ${process.pid}, not described in process ${descriptor.process}. ${hint}`,
  )
}
