import { propertyOf } from '../anyValue.js'
import { requireAddress, requireInteger, wrongType } from '../arguments/scalars.js'

/** Ordinals and -1 for "none" go up to what a C `int` holds. */
const largestOrdinal = 0x7fff_ffff

const maxAddress = (1n << 64n) - 1n

const noAnswer: { readonly version?: unknown } = {}

// Every call with memory or a stream comes through here: the names for errors are put together only where there is one.

/** Refuses what is not an object of protocol version 0, or of a later one that is known. */
export function checkVersion(answer: unknown, protocol: string, api: string, name: string, newest = 0): void {
  const { version } = typeof answer === 'object' && answer !== null ? (answer as { version?: unknown }) : noAnswer
  if (version === 0 || (version === 1 && newest === 1)) return
  const property = `${name}[Symbol.for('${protocol}')]`
  if (typeof answer === 'function') throw wrongType(api, property, 'a property or getter that gives the data', answer)
  if (typeof answer !== 'object' || answer === null) throw wrongType(api, property, 'an object', answer)
  throw wrongType(api, `${property}.version`, newest === 0 ? '0, the only one known here' : '0 or 1', version)
}

/** Refuses what is not a 64-bit unsigned bigint in a property of an answer. */
export function checkAddress(value: unknown, api: string, name: string, property: string): void {
  if (typeof value !== 'bigint' || value < 0n || value > maxAddress) requireAddress(value, api, `${name}.${property}`)
}

/** Refuses what is not a device ordinal, or -1 where there is none or it is not known. */
export function checkOrdinal(value: unknown, api: string, name: string): void {
  if (typeof value === 'number' && (value | 0) === value && value >= -1) return
  requireInteger(value, api, `${name}.deviceOrdinal`, -1, largestOrdinal)
}

/** Refuses what is not a number of bytes or elements in a property of an answer. */
export function checkCount(value: unknown, api: string, name: string, property: string): void {
  if (!Number.isSafeInteger(value) || (value as number) < 0) requireInteger(value, api, `${name}.${property}`, 0)
}

/** A device ordinal. Whether there is such a device is for the driver to say. @throws TypeError, RangeError */
export function requireOrdinal(value: unknown, api: string, name: string): number {
  return requireInteger(value, api, name, 0, largestOrdinal)
}

/** Whether a value has the property of a protocol; its getter is not run. A revoked proxy has nothing. */
export function offers(value: unknown, protocol: symbol): boolean {
  if (typeof value !== 'object' || value === null) return false
  try {
    return protocol in value
  } catch {
    return false
  }
}

/** Whether a value is the plain descriptor of the given kind. */
export function isPlain<K extends string>(value: unknown, kind: K): value is { readonly kind: K } {
  return typeof value === 'object' && propertyOf(value, 'kind') === kind
}

/** Handles and addresses mean something else, or nothing, in another process. */
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
