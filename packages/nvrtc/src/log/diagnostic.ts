/** Severity of a message. Fatal, internal and catastrophic errors count as errors. */
export type Severity = 'error' | 'warning' | 'remark' | 'note' | 'info'

/** One message of a compiler's log. */
export interface Diagnostic {
  /** Severity of the message. */
  readonly severity: Severity
  /** Text of the message, without place and number. */
  readonly message: string
  /** The source's name; for assembler messages, the assembler's name of its input. */
  readonly file?: string
  /** Line of the message, counted from 1. */
  readonly line?: number
  /** Column of the message in characters, counted from 1; absent if the log does not mark a column. */
  readonly column?: number
  /** Number of the message, for `diagnosticSuppress`. */
  readonly number?: number
  /** The source line of the message. */
  readonly text?: string
}

const severities: ReadonlyMap<string, Severity> = new Map([
  ['catastrophic error', 'error'],
  ['internal error', 'error'],
  ['fatal error', 'error'],
  ['command-line error', 'error'],
  ['fatal', 'error'],
  ['error', 'error'],
  ['warning', 'warning'],
  ['remark', 'remark'],
  ['note', 'note'],
  ['info', 'info'],
])

// Patterns end where the message begins: with `.*$` after them, the linter of patterns takes minutes.
/** `axpy.cu(3): warning #177-D: …`, also without a place, and capitalized. */
const ofCompiler = /^(?:(.+?)\((\d+)\): )?([a-z -]+)(?: #(\d+)(?:-D)?)?: /i
/** `nvrtc: error: …` */
const ofOptions = /^nvrtc: (error|warning): /
/** `ptxas application ptx input, line 21; error   : …` */
const ofAssembler = /, line (\d+); (\w+) +: /
/** `ptxas fatal   : …`, also the linker's messages without the name. */
const ofAssemblerAlone = /^(\w+) +: /
/** nvJitLink: `ERROR 4: bad input:a.cubin` */
const ofLinker = /^ERROR \w+(?: in \w+)?[:,] /
/** nvJitLink: `unrecognized option: -nonsense` */
const unknownOption = 'unrecognized option: '

/** Returns the messages of a log, in order. Skips other lines, such as a count of errors. */
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
    // Until an empty line: the rest of the message, then the source line and a caret.
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
  if (options !== null) return head(options, line, options[1])
  const assembler = assemblerHead(line.replace(/^ptxas +/, ''))
  if (assembler !== undefined) return { ...assembler, isAssembler: true }
  const linker = ofLinker.exec(line)
  if (linker !== null) return head(linker, line, 'error')
  if (line.startsWith(unknownOption)) return { diagnostic: { severity: 'error', message: line } }
  const compiler = ofCompiler.exec(line)
  return compiler === null
    ? undefined
    : head(compiler, line, compiler[3]?.toLowerCase(), compiler[1], compiler[2], compiler[4])
}

function assemblerHead(line: string): Head | undefined {
  const alone = ofAssemblerAlone.exec(line)
  if (alone !== null) return head(alone, line, alone[1])
  const placed = ofAssembler.exec(line)
  if (placed === null || placed.index === 0) return undefined
  return head(placed, line, placed[2], line.slice(0, placed.index), placed[1])
}

/** Returns a message whose text follows the match; `undefined` if the word is not a severity. */
function head(
  { 0: matched, index }: RegExpExecArray,
  text: string,
  word = '',
  file?: string,
  line?: string,
  number?: string,
): Head | undefined {
  const severity = severities.get(word)
  if (severity === undefined) return undefined
  return {
    diagnostic: {
      severity,
      message: text.slice(index + matched.length),
      ...(file === undefined ? {} : { file }),
      ...(line === undefined ? {} : { line: Number(line) }),
      ...(number === undefined ? {} : { number: Number(number) }),
    },
    line: line === undefined ? undefined : Number(line),
  }
}

/** Returns text and column. Source line and caret line are both indented by two characters, tabs included. */
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
