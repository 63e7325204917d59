import { inspectKey } from '../inspection.js'
import { toPlainJson } from '../json.js'
import { type Inspect, printError, stackOfCaller } from './print.js'

/** Result of `toJSON` of a Shoal error: name, code, message and the fields of its class. */
export interface ShoalErrorJson {
  /** Name of the class. */
  readonly name: string
  /** The code of the error, for programs. */
  readonly code: string
  /** The message, for people. */
  readonly message: string
  readonly [field: string]: unknown
}

/**
 * Base class of every error that Shoal defines.
 *
 * Wrong arguments throw plain `TypeError` and `RangeError` instead, as elsewhere in JavaScript.
 *
 * `code` is stable across releases; `message` is for people and may change. Data fields are own enumerable properties,
 * so `console.log(error)` shows them and `JSON.stringify(error)` includes them. A printed error has at most 15 lines.
 * Long data, such as the attempts of a search, appears only in JSON.
 */
export abstract class ShoalError extends Error {
  /** Stable across releases, for programs. */
  abstract readonly code: string

  constructor(message: string, options?: { cause?: unknown }) {
    const limit = raiseStackTraceLimit()
    // `cause: undefined` would print "[cause]: undefined" in every error.
    super(message, options?.cause === undefined ? undefined : { cause: options.cause })
    if (limit === undefined) return
    Error.stackTraceLimit = limit
    if (typeof this.stack === 'string') this.stack = stackOfCaller(this.stack, message, limit)
  }

  override toString(): string {
    return `${this.name} [${this.code}]: ${this.message}`
  }

  /** Returns plain data: `name`, `code`, `message`, the fields of the class and the cause, without the stack. */
  toJSON(): ShoalErrorJson {
    const json: Record<string, unknown> = { name: this.name, code: this.code, message: this.message }
    for (const [field, value] of Object.entries(this)) {
      if (!(field in json)) json[field] = toPlainJson(value, field)
    }
    if (this.cause !== undefined) json['cause'] = causeToJson(this.cause)
    return json as unknown as ShoalErrorJson
  }

  /** @internal At most 15 lines, whatever the data. */
  [inspectKey](_depth: number, options: object, inspect: Inspect): string {
    return typeof inspect === 'function' ? printError(this, inspect, options) : (this.stack ?? String(this))
  }
}

/** Most stack frames that the packages add above the caller's. */
const ownFrames = 20

/**
 * Raises the stack limit, so that it reaches beyond the packages' own frames.
 *
 * @returns the limit to restore; `undefined` if the program fixed the limit or switched stacks off
 */
function raiseStackTraceLimit(): number | undefined {
  const limit: unknown = Error.stackTraceLimit
  if (typeof limit !== 'number' || !(limit > 0) || limit > 100) return undefined
  try {
    Error.stackTraceLimit = limit + ownFrames
    return limit
  } catch {
    return undefined // frozen
  }
}

function causeToJson(cause: unknown): unknown {
  if (cause instanceof ShoalError) return cause.toJSON()
  if (cause instanceof Error) return { name: cause.name, message: cause.message }
  return String(cause)
}

/** Puts the name on the prototype: V8 finds it there for the stack, and it is no data field. */
export function nameErrorClass(errorClass: { readonly prototype: Error }, name: string): void {
  Object.defineProperty(errorClass.prototype, 'name', { value: name, writable: true, configurable: true })
}
