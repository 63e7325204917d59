/** One small fault: a range of a file and its replacement. */
export interface Mutant {
  /** Kind of the fault, such as `wait left out`. `draw` picks a line first, then one of the kinds on that line. */
  readonly kind: string
  /** Path below the root of the repository. */
  readonly file: string
  readonly start: number
  readonly end: number
  readonly replacement: string
}

/** A mutant by its line, which a person can find in the source. */
export interface Place {
  readonly file: string
  readonly line: number
  /** The original line without its indentation. */
  readonly before: string
  /** The replaced text and its replacement. */
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

/** Operators of TypeScript and C++ with the operator that replaces each. */
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
