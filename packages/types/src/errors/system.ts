import { nameErrorClass, ShoalError } from './base.js'

export interface SystemErrorOptions {
  /** The function that was called. */
  readonly api: string
  /** Its parameter that names the file, and what was given for it. */
  readonly parameter: string
  readonly value: string
  /** The error of Node.js, whose code becomes the code of this one. */
  readonly cause: unknown
}

/** The operating system refused, such as to read a file. `code` is the system's own name, such as `'ENOENT'`. */
export class SystemError extends ShoalError {
  static {
    nameErrorClass(SystemError, 'SystemError')
  }

  readonly code: string
  readonly api: string
  readonly parameter: string
  readonly value: string

  constructor(options: SystemErrorOptions) {
    const { api, parameter, value, cause } = options
    const { code, message } = cause as { readonly code?: string; readonly message?: string }
    super(`${api}: ${parameter} '${value}' is refused by the system: ${message ?? String(cause)}`, options)
    this.code = code ?? 'SHOAL_SYSTEM'
    this.api = api
    this.parameter = parameter
    this.value = value
  }
}
