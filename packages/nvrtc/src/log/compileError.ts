import { defineUnprinted, nameErrorClass, type ShoalErrorJson, StatusError } from '@shoal/types'
import { type Diagnostic, parseLog } from './diagnostic.js'

/** What a {@link CompileError} says. */
export interface CompileErrorOptions {
  readonly library: string
  readonly api: string
  readonly status: number
  readonly code: string
  /** What the compiler wrote. */
  readonly log: string
  /** What the library says of the status, where the log is empty. */
  readonly description: string
  /** What to do, given the messages; the last line of the message. */
  readonly hint?: ((diagnostics: readonly Diagnostic[]) => string | undefined) | undefined
  readonly libraryVersion?: string | undefined
}

/**
 * A compiler or a linker refused its input. The message has the first error with its place and its line; `diagnostics`
 * has all of them, `log` everything that was written.
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

  /** What the compiler wrote. Not printed. */
  declare readonly log: string
  /** Its messages, in their order. Not printed. */
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

/** Lines of a compiler's message in that of the error; instances of templates make many. */
const mostLines = 4

/** `axpy.cu:3:14: error: …`, with the line and a mark below it. */
function showDiagnostic({ file, line, column, severity, message, text }: Diagnostic): string {
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  const lines = message.split('\n')
  const short = lines.length > mostLines ? `${lines.slice(0, mostLines).join('\n')}\n…` : message
  const shown = `${place === '' ? '' : `${place}: `}${severity}: ${short}`
  if (text === undefined || column === undefined) return shown
  const mark = text.slice(0, column - 1).replace(/[^\t]/g, ' ')
  return `${shown}\n  ${text}\n  ${mark}^`
}
