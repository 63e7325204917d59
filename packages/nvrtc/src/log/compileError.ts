import { defineUnprinted, nameErrorClass, type ShoalErrorJson, StatusError } from '@shoal/types'
import { type Diagnostic, parseLog } from './diagnostic.js'

/** Options of the {@link CompileError} constructor. */
export interface CompileErrorOptions {
  readonly library: string
  readonly api: string
  readonly status: number
  readonly code: string
  /** The compiler's log. */
  readonly log: string
  /** The library's description of the status, used if the log is empty. */
  readonly description: string
  /** Returns a hint for the messages; the last line of the error's message. */
  readonly hint?: ((diagnostics: readonly Diagnostic[]) => string | undefined) | undefined
  readonly libraryVersion?: string | undefined
}

/**
 * A compiler or a linker refused its input.
 *
 * The message contains the first error with its place and source line. `diagnostics` contains all errors, `log` the
 * whole log.
 *
 * @example
 * if (error instanceof CompileError) {
 *   for (const { file, line, message } of error.diagnostics) console.log(file, line, message)
 * }
 */
export class CompileError extends StatusError {
  static {
    nameErrorClass(CompileError, 'CompileError')
  }

  /** The compiler's log. `console.log` of the error omits it. */
  declare readonly log: string
  /** The compiler's messages, in order. `console.log` of the error omits them. */
  declare readonly diagnostics: readonly Diagnostic[]

  constructor(options: CompileErrorOptions) {
    const { log } = options
    const diagnostics = parseLog(log)
    const hint = options.hint?.(diagnostics)
    const description = describe(diagnostics, log.trim() || options.description)
    super({ ...options, description: hint === undefined ? description : `${description}\n${hint}` })
    defineUnprinted(this, { log, diagnostics })
  }

  override toJSON(): ShoalErrorJson {
    return { ...super.toJSON(), log: this.log, diagnostics: this.diagnostics }
  }
}

function describe(diagnostics: readonly Diagnostic[], otherwise: string): string {
  const errors = diagnostics.filter(({ severity }) => severity === 'error')
  const [first] = errors
  if (first === undefined) return otherwise.split('\n').slice(0, 4).join('\n')
  const others = errors.length - 1
  const more = others === 0 ? '' : `\n(and ${others} more ${others === 1 ? 'error' : 'errors'}; diagnostics has all)`
  return `${showDiagnostic(first)}${more}`
}

/** Most lines of a compiler message in an error; template instances can make many. */
const mostLines = 4

/** Formats `axpy.cu:3:14: error: …`, with the source line and a mark below it. */
function showDiagnostic({ file, line, column, severity, message, text }: Diagnostic): string {
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  const lines = message.split('\n')
  const short = lines.length > mostLines ? `${lines.slice(0, mostLines).join('\n')}\n…` : message
  const shown = `${place === '' ? '' : `${place}: `}${severity}: ${short}`
  if (text === undefined || column === undefined) return shown
  const mark = text.slice(0, column - 1).replace(/[^\t]/g, ' ')
  return `${shown}\n  ${text}\n  ${mark}^`
}
