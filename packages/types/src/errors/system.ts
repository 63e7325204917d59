import { nameErrorClass, ShoalError } from './base.js'

/** What a {@link SystemError} says. */
export interface SystemErrorOptions {
  /** The function that was called. */
  readonly api: string
  /** Its parameter that names the file, and what was given for it; absent where it has none. */
  readonly parameter?: string | undefined
  /** The path, address or name that it is about. */
  readonly value?: string | undefined
  /** The error of Node.js, whose code becomes the code of this one. */
  readonly cause: unknown
}

/**
 * The operating system refused, such as to read a file or to write to a socket. `code` is the system's own name, such
 * as `'ENOENT'`.
 */
export class SystemError extends ShoalError {
  static {
    nameErrorClass(SystemError, 'SystemError')
  }

  /** The system's own name, such as `'ENOENT'`. */
  readonly code: string
  /** The function that was called. */
  readonly api: string
  /** Its parameter that names the file; absent where it has none. */
  declare readonly parameter?: string
  /** What was given for it. */
  declare readonly value?: string

  constructor(options: SystemErrorOptions) {
    const { api, parameter, value, cause } = options
    const { code, message } = cause as { readonly code?: string; readonly message?: string }
    const what = parameter === undefined ? 'this' : `${parameter} '${String(value).replaceAll('\0', '\\0')}'`
    super(`${api}: ${what} is refused by the system: ${message ?? String(cause)}`, options)
    this.code = code ?? 'SHOAL_SYSTEM'
    this.api = api
    if (parameter !== undefined) this.parameter = parameter
    if (value !== undefined) this.value = value
  }
}
