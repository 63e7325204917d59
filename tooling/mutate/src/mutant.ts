/** One small fault: a range of a file and what stands there instead. */
export interface Mutant {
  /** What is wrong, such as `a wait that is left out`: a line is drawn first, then one of its kinds. */
  readonly kind: string
  /** Path below the root of the repository. */
  readonly file: string
  readonly start: number
  readonly end: number
  readonly replacement: string
}

/** A mutant by line, as a person finds it. */
export interface Place {
  readonly file: string
  readonly line: number
  /** The line as it is, without its indentation. */
  readonly before: string
  /** What is replaced, and by what. */
  readonly change: string
}

export function placeOf(mutant: Mutant, text: string): Place {
  const begin = text.lastIndexOf('\n', mutant.start - 1) + 1
  const end = text.indexOf('\n', mutant.start)
  const shorten = (part: string): string => {
    const line = part.replaceAll(/\s+/g, ' ').trim()
    return line.length > 70 ? `${line.slice(0, 67)}…` : line
  }
  return {
    file: mutant.file,
    line: text.slice(0, mutant.start).split('\n').length,
    before: shorten(text.slice(begin, end < 0 ? undefined : end)),
    change: `${shorten(text.slice(mutant.start, mutant.end))} → ${shorten(mutant.replacement) || 'nothing'}`,
  }
}

export function mutated(mutant: Mutant, text: string): string {
  return text.slice(0, mutant.start) + mutant.replacement + text.slice(mutant.end)
}

/** The operators that take each other's place, in TypeScript and in C++. */
export const operators: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '==': '!=',
  '!=': '==',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '??': '&&',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '&': '|',
  '|': '&',
  '<<': '>>',
  '>>': '<<',
  '>>>': '<<',
  '+=': '-=',
  '-=': '+=',
  '??=': '=',
}
