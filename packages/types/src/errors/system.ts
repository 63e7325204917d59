import { nameErrorClass, ShoalError } from './base.js'

/** Options of the {@link SystemError} constructor. */
export interface SystemErrorOptions {
  /** The function that was called. */
  readonly api: string
  /** The function's parameter that names the file; absent if there is no such parameter. */
  readonly parameter?: string | undefined
  /** The path, address or name that was passed. */
  readonly value?: string | undefined
  /** The Node.js error, whose code becomes the code of this error. */
  readonly cause: unknown
}

/**
 * The operating system refused an operation, such as reading a file.
 *
 * `code` is the system's own name, such as `'ENOENT'`.
 */
export class SystemError extends ShoalError {
  static {
    nameErrorClass(SystemError, 'SystemError')
  }

  /** The system's own name, such as `'ENOENT'`. */
  readonly code: string
  /** The function that was called. */
  readonly api: string
  /** The function's parameter that names the file; absent if there is no such parameter. */
  declare readonly parameter?: string
  /** The value passed for the parameter. */
  declare readonly value?: string

  constructor(options: SystemErrorOptions) {
    const { api, parameter, value, cause } = options
    const { code, message } = cause as { readonly code?: string; readonly message?: string }
    const what = parameter === undefined ? 'this' : `${parameter} '${String(value).replaceAll('\0', '\\0')}'`
    super(`${api}: the system refused ${what}: ${message ?? String(cause)}`, options)
    this.code = code ?? 'SHOAL_SYSTEM'
    this.api = api
    if (parameter !== undefined) this.parameter = parameter
    if (value !== undefined) this.value = value
  }
}
