/** How grave a message is. What ends a compilation is an error, also where the compiler calls it fatal or catastrophic. */
export type Severity = 'error' | 'warning' | 'remark' | 'note' | 'info'

/** One message of a compiler's log. */
export interface Diagnostic {
  /** How grave it is. */
  readonly severity: Severity
  /** Its text, without place and number. */
  readonly message: string
  /** The source, by the name it was given; for what the assembler says, what it calls its input. */
  readonly file?: string
  /** From 1. */
  readonly line?: number
  /** From 1, in characters; where the log marks it. */
  readonly column?: number
  /** Number of the message, which `diagnosticSuppress` takes. */
  readonly number?: number
  /** The line of the source that the message is about. */
  readonly text?: string
}

const words: Readonly<Record<string, Severity>> = {
  warning: 'warning',
  remark: 'remark',
  note: 'note',
  info: 'info',
}
const severityOf = (word: string): Severity => words[word] ?? 'error'

const grades = 'catastrophic error|internal error|fatal error|command-line error|error|warning|remark|note'
/** `axpy.cu(3): warning #177-D: …`, also without a place and with a capital. */
const ofCompiler = new RegExp(`^(?:(.+)\\((\\d+)\\): )?(${grades})(?: #(\\d+)(?:-D)?)?: (.*)$`, 'i')
/** `nvrtc: error: …` */
const ofOptions = /^nvrtc: (error|warning): (.*)$/
/** `ptxas application ptx input, line 21; error   : …`, and without a place; the linker's are the same without the name. */
const ofAssembler = /^(?:ptxas\s+)?(?:(.+?), line (\d+); )?(fatal|error|warning|info)\s+: (.*)$/
/** nvJitLink: `ERROR 4: bad input:a.cubin`, `unrecognized option: -nonsense` */
const ofLinker = /^(?:ERROR \w+(?: in \w+)?[:,] (.*)|(unrecognized option: .*))$/

/** The messages of a log, in their order. What is none of them, a count of errors for instance, is left out. */
export function parseLog(log: string): Diagnostic[] {
  const found: Diagnostic[] = []
  const lines = log.split('\n')
  for (let index = 0; index < lines.length; index++) {
    const line = (lines[index] as string).trimEnd()
    const head = headOf(line)
    if (head === undefined) continue
    if (head.line === undefined || head.isAssembler) {
      found.push(head.diagnostic)
      continue
    }
    // Up to an empty line: more of the message, then the source line and below it a caret.
    const block: string[] = []
    while (index + 1 < lines.length) {
      const next = (lines[index + 1] as string).trimEnd()
      if (next === '' || headOf(next) !== undefined) break
      block.push(next)
      index += 1
    }
    found.push({ ...head.diagnostic, ...placeIn(block, head.diagnostic.message) })
  }
  return found
}

interface Head {
  readonly diagnostic: Diagnostic
  readonly line?: number | undefined
  readonly isAssembler?: boolean
}

function headOf(line: string): Head | undefined {
  const options = ofOptions.exec(line)
  if (options !== null) return head(options[1], options[2])
  const assembler = ofAssembler.exec(line)
  if (assembler !== null) {
    return { ...head(assembler[3], assembler[4], assembler[1], assembler[2]), isAssembler: true }
  }
  const linker = ofLinker.exec(line)
  if (linker !== null) return head('error', linker[1] ?? linker[2])
  const compiler = ofCompiler.exec(line)
  return compiler === null ? undefined : head(compiler[3], compiler[5], compiler[1], compiler[2], compiler[4])
}

function head(word = '', message = '', file?: string, line?: string, number?: string): Head {
  return {
    diagnostic: {
      severity: severityOf(word.toLowerCase()),
      message,
      ...(file === undefined ? {} : { file }),
      ...(line === undefined ? {} : { line: Number(line) }),
      ...(number === undefined ? {} : { number: Number(number) }),
    },
    line: line === undefined ? undefined : Number(line),
  }
}

/** Source lines are indented by two, tabs and all, and the caret line has the same indentation. */
function placeIn(block: readonly string[], message: string): Partial<Diagnostic> {
  const caret = block.findIndex((line, index) => index > 0 && /^\s*\^$/.test(line))
  if (caret < 0) return block.length === 0 ? {} : { message: joined(message, block) }
  const more = [...block.slice(0, caret - 1), ...block.slice(caret + 1)]
  return {
    text: (block[caret - 1] as string).slice(2),
    column: (block[caret] as string).length - 2,
    ...(more.length === 0 ? {} : { message: joined(message, more) }),
  }
}

function joined(message: string, lines: readonly string[]): string {
  return [message, ...lines.map((line) => line.trim())].join('\n')
}
